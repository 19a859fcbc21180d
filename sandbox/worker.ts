/** Piscina's entry: one run from its order to its outcome. A run that fails is data; nothing here throws because of one. */
import type { WorkerTask } from '../core/protocol.ts'
import { openLink } from './link.ts'
import { runLoop } from './loop.ts'
import { askModels } from './models/retry.ts'

export default async function work({ order, port }: WorkerTask): Promise<void> {
	const link = openLink(port)
	link.end(await runLoop(order, link, (request, io) => askModels(order.models, request, io)))
}
