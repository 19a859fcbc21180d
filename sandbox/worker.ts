/** The entry of worker threads: executes runs. A failed run is an outcome, not an error. */
import type { WorkerTask } from '../core/protocol.ts'
import { askFitted } from './context/ask-fitted.ts'
import { runLoop } from './loop.ts'
import { askModels } from './models/retry.ts'
import { serve } from './serve.ts'

export default function work({ port }: WorkerTask): Promise<void> {
	return serve(port, (order, link) =>
		runLoop(order, link, (request, io) =>
			askFitted(order, request, io, (requestFor) => askModels(order.models, requestFor, io)),
		),
	)
}
