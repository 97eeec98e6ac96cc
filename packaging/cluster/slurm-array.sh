#!/bin/bash
#SBATCH --job-name=table3
#SBATCH --array=1-16                # as many jobs as you like, with a share of the runs each
#SBATCH --cpus-per-task=4           # or --gres=gpu:1
#SBATCH --time=08:00:00
#SBATCH --requeue                   # a job that is taken off its machine comes back, and continues
episodica run table3 --out /shared/runs --data.root /shared/data --part "$SLURM_ARRAY_TASK_ID/16"
