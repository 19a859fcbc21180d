/** A thread that checks a large data file while the start continues. */
import { parentPort, workerData } from 'node:worker_threads'
import { checkFile } from './check.ts'
import type { CheckLimits } from './check.ts'

const { path, limits } = workerData as { path: string; limits: CheckLimits }
parentPort?.postMessage(checkFile(path, limits))
