"""`/job`: learning in depth, which takes longer than a request."""

import asyncio
from http import HTTPStatus

from fastapi import APIRouter

from episodica.serve.in_depth import require_adaptable
from episodica.serve.job import Jobs
from episodica.serve.messages import Job
from episodica.serve.orders import ToStart, Who
from episodica.serve.refusals import CHANGE, possible
from episodica.serve.worker import ModelWorker


def job_routes(jobs: Jobs, worker: ModelWorker) -> APIRouter:
    routes = APIRouter()

    @routes.get("/job")
    async def job() -> Job:
        """The work that is under way, or what came of the last."""
        return Job(job=jobs.info)

    @routes.post("/job", status_code=HTTPStatus.ACCEPTED, responses=possible(*CHANGE))
    async def start_job(order: ToStart, who: Who) -> Job:
        """Learn in depth, which takes minutes. The model answers meanwhile, and changes only if that is better."""
        await worker.ask(lambda now, end: require_adaptable(now, jobs.info))
        return Job(job=jobs.start(who))

    @routes.delete("/job")
    async def stop_job() -> Job:
        """Stop it; the model stays as it was."""
        return Job(job=await asyncio.to_thread(jobs.stop))

    return routes
