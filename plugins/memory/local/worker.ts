/** The thread that runs the sentence encoder: about 20 ms of computing for each text. */
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import type { EncodeReply, EncodeRequest } from './encoder.ts'
import { ENCODER, MODEL } from './packages.ts'

/** Larger batches need more memory and save little time. */
const BATCH = 16

interface Model {
	embed(texts: string[]): Promise<number[][]>
}

const { folder } = workerData as { folder: string }
const port = parentPort
if (!port) throw new Error('this file is a thread of plugins/memory')

const load = createRequire(join(folder, 'package.json'))
const { initModel } = load(ENCODER) as { initModel(source: unknown): Promise<Model> }
const { modelSource } = load(MODEL) as { modelSource: unknown }
const model = await initModel(modelSource)

/** One after another, in the order of the requests. */
let last = Promise.resolve()
port.on('message', (request: EncodeRequest) => {
	last = last.then(() => answer(request))
})

async function answer({ id, texts }: EncodeRequest): Promise<void> {
	let reply: EncodeReply
	try {
		const vectors: number[][] = []
		for (let from = 0; from < texts.length; from += BATCH) {
			vectors.push(...(await model.embed(texts.slice(from, from + BATCH))))
		}
		reply = { id, vectors: vectors.map((vector) => Float32Array.from(vector)) }
	} catch (error) {
		reply = { id, error: error instanceof Error ? error.message : String(error) }
	}
	port?.postMessage(reply)
}
