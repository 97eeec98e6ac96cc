#!/bin/bash
#SBATCH --nodes=4 --ntasks-per-node=1 --cpus-per-task=16 --time=08:00:00
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun ray symmetric-run --address "$head:6379" --min-nodes 4 -- \
    episodica run table3 --on ray --address auto --cpus 4 --out /shared/runs --data.root /shared/data
