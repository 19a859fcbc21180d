/** A thread that packs one backup, so that digests and checks do not block the gateway. */
import { parentPort, workerData } from 'node:worker_threads'
import { isFault, toWire } from '../errors.ts'
import type { WireError } from '../errors.ts'
import { pack } from './pack.ts'
import type { Packed, PackJob } from './pack.ts'

export type PackAnswer = { packed: Packed } | { error: WireError; system?: string | undefined }

const answer = await pack(workerData as PackJob).then(
	(packed): PackAnswer => ({ packed }),
	(error: unknown): PackAnswer => ({
		error: toWire(error),
		// The code of a Fault is not that of a system error.
		system: isFault(error) ? undefined : (error as NodeJS.ErrnoException).code,
	}),
)
parentPort?.postMessage(answer)
