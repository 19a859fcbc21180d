/** The program of a child process that inspects a plugin, whose code may hang or end the process. Sends the result to the parent. */
import { sendToParent } from '../child.ts'
import type { CheckMessage, CheckOrder } from './check.ts'
import { inspect } from './inspect.ts'

process.on('disconnect', () => process.exit(1))
process.once('message', (order: CheckOrder) => void run(order))

async function run(order: CheckOrder): Promise<void> {
	const report = await inspect(order, {
		doing: (what) => sendToParent<CheckMessage>({ doing: what }),
		uncaught: (report) => ['uncaughtException', 'unhandledRejection'].forEach((event) => process.on(event, report)),
	})
	await sendToParent<CheckMessage>({ report })
	process.exit(0)
}
