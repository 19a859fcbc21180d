/** Piscina's entry: one run from its order to its outcome. A run that fails is data; nothing here throws because of one. */
import type { ToMain, WorkerTask } from '../core/protocol.ts'
import { askFitted } from './context/ask-fitted.ts'
import { openLink } from './link.ts'
import { runLoop } from './loop.ts'
import { askModels } from './models/retry.ts'

export default async function work({ order, port }: WorkerTask): Promise<ToMain[]> {
	const link = openLink(port)
	return link.end(
		await runLoop(order, link, (request, io) =>
			askFitted(order, request, io, (requestFor, each) => askModels(order.models, requestFor, each)),
		),
	)
}
