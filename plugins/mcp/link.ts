/** One connection from its opening to its end: the process or the requests behind it, the session, and whether it is alive. */
import { messageOf } from '../../core/errors.ts'
import type { AgentRef } from '../../core/plugin.ts'
import type { Hooks, Session } from './session.ts'
import type { McpRecord } from './records.ts'
import { loadSdk } from './sdk.ts'
import type { Tail } from './tail.ts'
import { openTarget } from './target.ts'
import type { Opened, TargetServices } from './target.ts'

export type Link = Awaited<ReturnType<typeof openLink>>

export interface LinkOptions {
	record: McpRecord
	agent: AgentRef
	services: TargetServices
	said: Tail
	hooks: Omit<Hooks, 'trouble' | 'closed'>
	/** Running calls: a working server may be too busy to answer a ping. */
	busy(): boolean
	/** Receives the process or the requests as soon as they exist. */
	opened(opened: Opened): void
	/** Aborts the opening, or ends the connection; with the reason `AT_ONCE` a process is killed immediately. */
	signal: AbortSignal
}

/** The reason of an abort without a clean shutdown. */
export const AT_ONCE = 'at once'

const PING_EVERY_MS = 30_000
const MISSED_PINGS = 2
/** Far more than is shown, which is redacted before it is cut. */
const TROUBLE_LIMIT = 8_192

/** Throws the error of the program, the network or the server, after everything was released. */
export async function openLink(options: LinkOptions) {
	const { record, signal } = options
	const over = Promise.withResolvers<string>()
	let trouble = ''
	let session: Session | undefined
	const opened = await openTarget(record, options.agent, options.services, options.said, signal)
	const kill = (): void => {
		if (signal.reason === AT_ONCE) void opened.process?.stop(true)
		over.resolve('it was stopped')
	}
	signal.addEventListener('abort', kill, { once: true })
	if (signal.aborted) kill()
	options.opened(opened)
	try {
		const sdk = await loadSdk()
		session = await sdk.openSession(
			opened.target,
			{
				...options.hooks,
				trouble(error) {
					trouble = messageOf(error).slice(0, TROUBLE_LIMIT)
					// Such as a broken event stream. A process is reported when it ends.
					if (record.transport !== 'stdio') void check()
				},
				closed: () => over.resolve((trouble || 'the server closed the connection') + lastWords(options)),
			},
			signal,
		)
	} catch (error) {
		signal.removeEventListener('abort', kill)
		await opened.release()
		throw withTrouble(error, trouble && trouble + lastWords(options))
	}

	// Ends with the connection. The plugin's own timers have a common limit, which connections must not exhaust.
	const timer = setInterval(() => {
		if (!options.busy()) void check()
	}, PING_EVERY_MS)
	timer.unref()
	let missed = 0
	let checking = false
	return {
		session,
		/** Settles with the reason when the connection is over. */
		over: over.promise,
		/** Checks whether the server still responds, and ends the connection if not. */
		check,
		/** Ends it for that reason. */
		lose: (why: string): void => over.resolve(why),
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
			const isSure = record.transport !== 'stdio' && !/timed out/i.test(messageOf(error))
			if (isSure || missed >= MISSED_PINGS) over.resolve(`it does not answer: ${messageOf(error)}`)
		} finally {
			checking = false
		}
	}
}

/** The last output of a program is usually the reason why it ended. */
function lastWords({ record, said }: LinkOptions): string {
	if (record.transport !== 'stdio') return ''
	// Redacted where it is shown.
	const lines = said
		.text((text) => text)
		.trimEnd()
		.split('\n')
	const last = lines.at(-1) ?? ''
	// Below an uncaught error, Node writes the stack and its own version.
	const uncaught = /^Node\.js v\d/.test(last) ? lines.findLast((one) => /^\w*Error\b.*: /.test(one)) : undefined
	const line = (uncaught ?? reasonOfNpm(lines) ?? last).trim()
	return line === '' ? '' : `; its last output: ${line}`
}

const NPM = /^npm (?:error|ERR!) /
const NPM_LOG = /^npm \S+ A complete log of this run/
const NPM_CODE = /^npm \S+ (?:code|errno|syscall|path|dest|file|command)\b/

/** npm's report begins with codes, then gives the reason; it ends with the name of its log. */
function reasonOfNpm(lines: readonly string[]): string | undefined {
	if (!NPM_LOG.test(lines.at(-1) ?? '')) return undefined
	const before = lines.slice(0, -1)
	const start = before.findLastIndex((line) => !NPM.test(line) || NPM_LOG.test(line)) + 1
	return before.slice(start).find((line) => !NPM_CODE.test(line))
}

/** "Connection closed" is less specific than the error before it. */
function withTrouble(error: unknown, trouble: string): unknown {
	if (trouble === '' || !/connection closed/i.test(messageOf(error))) return error
	return new Error(trouble, { cause: error })
}
