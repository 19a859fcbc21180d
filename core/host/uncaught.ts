/**
 * Uncaught exceptions and unhandled rejections. One of a plugin is reported as that plugin's failure, any other one as an error
 * of the gateway. Neither ends the process: most do not affect other plugins, runs and connections, and acknowledged writes are
 * on the disk.
 */
import { messageOf } from '../errors.ts'
import { openNotices } from '../events/notices.ts'
import type { Logger } from '../log/log.ts'
import { leaveContext } from '../util/context.ts'
import { culpritOf } from '../util/culprit.ts'
import type { Culprit } from '../util/culprit.ts'

export interface UncaughtOptions {
	log: Logger
	/** Records it in the plugin's status; false if no such plugin runs. */
	failing(plugin: string, message: string): boolean
	/** Emits an event about it. */
	emit(event_type: string, payload: Record<string, unknown>): void
}

const MESSAGE_LIMIT = 500

export type Uncaught = ReturnType<typeof openUncaught>

export function openUncaught({ log, failing, emit }: UncaughtOptions) {
	const notice = openNotices(1)
	let count = 0

	const report = (error: unknown, { owner, isOurs }: Culprit): void => {
		const reason = messageOf(error).slice(0, MESSAGE_LIMIT).toWellFormed()
		if (owner === undefined) {
			count++
			return notice('', (untold) => {
				log.fatal({ err: error, ...untold }, 'an error of the gateway was thrown, and nothing caught it')
				emit('gateway.error', { message: reason, ...untold })
			})
		}
		const runs = failing(owner, `an error of this plugin was thrown, and nothing caught it: ${reason}`)
		notice(owner, (untold) => {
			const message = runs
				? `an error of plugin "${owner}" was thrown, and nothing caught it: ${reason}`
				: `plugin "${owner}" does not run, but something that it started does; its error was not caught: ${reason}`
			// Possibly a bug of the gateway in work for a plugin, so it is logged as one.
			log[isOurs ? 'fatal' : 'error']({ err: error, plugin: owner, ...untold }, message)
			emit('plugin.failed', { plugin: owner, message, ...untold })
		})
	}

	return {
		/** The number of errors of the gateway so far. */
		get count(): number {
			return count
		},
		/**
		 * Reports an error; of each plugin, and of the gateway, at most one per minute, with the number of suppressed ones. `plugin`:
		 * whose error it is, if known. Never throws.
		 */
		report(error: unknown, plugin?: string): void {
			try {
				const culprit = plugin === undefined ? culpritOf(error) : { owner: plugin, isOurs: false }
				leaveContext()
				report(error, culprit)
			} catch (failure) {
				process.stderr.write(`an uncaught error could not be reported: ${messageOf(failure)}\n`)
			}
		},
	}
}
