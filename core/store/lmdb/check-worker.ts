/** A thread for looking over a large data file, so that the start goes on beside it. */
import { parentPort, workerData } from 'node:worker_threads'
import { checkFile } from './check.ts'
import type { CheckLimits } from './check.ts'

const { path, limits } = workerData as { path: string; limits: CheckLimits }
parentPort?.postMessage(checkFile(path, limits))
