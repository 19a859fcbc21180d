/** One connection from its opening to its end: its process or requests, its session, and the pings of the server. */
import { messageOf } from '../../core/errors.ts'
import type { AgentRef } from '../../core/plugin.ts'
import type { Hooks, Session } from './session.ts'
import type { McpRecord } from './records.ts'
import type { Tail } from './tail.ts'
import { openTarget } from './target.ts'
import type { Opened, TargetServices } from './target.ts'

export type Link = Awaited<ReturnType<typeof openLink>>

export interface LinkOptions {
	record: McpRecord
	agent: AgentRef
	services: TargetServices
	stderrTail: Tail
	hooks: Omit<Hooks, 'onError' | 'onClose'>
	/** Whether calls are in progress: a busy server may not answer a ping. */
	busy(): boolean
	/** Receives the process or the address before the session is opened. */
	opened(opened: Opened): void
	/** Aborts the opening or ends the connection. With the reason `AT_ONCE`, a process is killed immediately. */
	signal: AbortSignal
}

/** The abort reason that skips the clean shutdown. */
export const AT_ONCE = 'at once'

const PING_EVERY_MS = 30_000
const MISSED_PINGS = 2
/** Far more than is shown: the text is redacted before it is cut. */
const ERROR_LIMIT = 8_192

/** Throws the error of the program, the network or the server, after releasing everything. */
export async function openLink(options: LinkOptions) {
	const { record, signal } = options
	const ended = Promise.withResolvers<string>()
	let lastError = ''
	let session: Session | undefined
	const opened = await openTarget(record, options.agent, options.services, options.stderrTail, signal)
	const kill = (): void => {
		if (signal.reason === AT_ONCE && opened.target.kind === 'stdio') void opened.target.process.stop(true)
		ended.resolve('it was stopped')
	}
	signal.addEventListener('abort', kill, { once: true })
	if (signal.aborted) kill()
	options.opened(opened)
	try {
		const { openSession } = await import('./session.ts') // loads the MCP SDK
		session = await openSession(
			opened.target,
			{
				...options.hooks,
				onError(error) {
					lastError = messageOf(error).slice(0, ERROR_LIMIT)
					// Such as a broken event stream. The end of a process is reported separately.
					if (record.transport !== 'stdio') void check()
				},
				onClose: () => ended.resolve((lastError || 'the server closed the connection') + lastOutput(options)),
			},
			signal,
		)
	} catch (error) {
		signal.removeEventListener('abort', kill)
		await opened.release()
		throw withCause(error, lastError && lastError + lastOutput(options))
	}

	// Not one of the plugin's timers: connections must not exhaust their limit. Ends with the connection.
	const timer = setInterval(() => {
		if (!options.busy()) void check()
	}, PING_EVERY_MS)
	timer.unref()
	let missed = 0
	let checking = false
	return {
		session,
		/** Settles with the reason when the connection is over. */
		ended: ended.promise,
		/** Checks whether the server still responds, and ends the connection if not. */
		check,
		/** Ends the connection for this reason. */
		end: (why: string): void => ended.resolve(why),
		/** Releases everything. */
		async close(): Promise<void> {
			clearInterval(timer)
			signal.removeEventListener('abort', kill)
			if (signal.reason !== AT_ONCE) await session?.close().catch(() => {})
			await opened.release()
		},
	}

	async function check(): Promise<void> {
		if (!session || checking) return
		checking = true
		try {
			await session.ping()
			missed = 0
		} catch (error) {
			missed++
			const isCertain = record.transport !== 'stdio' && !/timed out/i.test(messageOf(error))
			if (isCertain || missed >= MISSED_PINGS) ended.resolve(`it does not answer: ${messageOf(error)}`)
		} finally {
			checking = false
		}
	}
}

/** The last line that a program printed, which is usually the reason why it ended. */
function lastOutput({ record, stderrTail }: LinkOptions): string {
	if (record.transport !== 'stdio') return ''
	// The caller redacts it.
	const lines = stderrTail
		.text((text) => text)
		.trimEnd()
		.split('\n')
	const last = lines.at(-1) ?? ''
	// After an uncaught error, Node prints the stack and its own version.
	const uncaught = /^Node\.js v\d/.test(last) ? lines.findLast((text) => /^\w*Error\b.*: /.test(text)) : undefined
	const line = (uncaught ?? reasonOfNpm(lines) ?? last).trim()
	return line === '' ? '' : `; its last output: ${line}`
}

const NPM = /^npm (?:error|ERR!) /
const NPM_LOG = /^npm \S+ A complete log of this run/
const NPM_CODE = /^npm \S+ (?:code|errno|syscall|path|dest|file|command)\b/

/** The first line of npm's report that is not a code. The report ends with the name of npm's log file. */
function reasonOfNpm(lines: readonly string[]): string | undefined {
	if (!NPM_LOG.test(lines.at(-1) ?? '')) return undefined
	const before = lines.slice(0, -1)
	const start = before.findLastIndex((line) => !NPM.test(line) || NPM_LOG.test(line)) + 1
	return before.slice(start).find((line) => !NPM_CODE.test(line))
}

/** Replaces "Connection closed" by the error before it, which is more specific. */
function withCause(error: unknown, cause: string): unknown {
	if (cause === '' || !/connection closed/i.test(messageOf(error))) return error
	return new Error(cause, { cause: error })
}
