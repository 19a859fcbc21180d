/** Inspects a plugin in a process of its own, since its code may hang or end the process, and sends the result to the parent. */
import type { CheckMessage, CheckOrder } from './check.ts'
import { inspect } from './inspect.ts'

process.on('disconnect', () => process.exit(1))
process.once('message', (order: CheckOrder) => void run(order))

async function run(order: CheckOrder): Promise<void> {
	const report = await inspect(order, {
		doing: (what) => send({ doing: what }),
		uncaught: (take) => ['uncaughtException', 'unhandledRejection'].forEach((event) => process.on(event, take)),
	})
	await send({ report })
	process.exit(0)
}

/** Settles once the message is sent: what comes next may end this process. */
function send(message: CheckMessage): Promise<void> {
	return new Promise((resolve) => process.send?.(message, () => resolve()))
}
