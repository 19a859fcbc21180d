/**
 * Connects an agent to one server, reconnects after a loss, and keeps the list of its tools.
 *
 * Failed attempts and lost connections are retried with increasing delays: indefinitely at an address, at most five times in a
 * row for a program. After that, or after a failure that a retry cannot fix, the status is `error` until the server is restarted,
 * its secrets change, or a run needs its tools.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault, isFault, messageOf } from '../../core/errors.ts'
import { now } from '../../core/util/ids.ts'
import { onAbort } from '../../core/util/on-abort.ts'
import type { AgentRef, Context, ToolCall } from '../../core/plugin.ts'
import { mapData } from '../../core/redactor/walk.ts'
import type { Semaphore } from '../../core/util/semaphore.ts'
import { emitOrLog } from '../shared/emit-or-log.ts'
import { openRefresher } from '../shared/refresher.ts'
import { openCalls } from './calls.ts'
import type { Calls } from './calls.ts'
import type { McpServerDetails, McpSettings, McpStatus } from './contract.ts'
import { readDefinitions } from './definitions.ts'
import type { Definition } from './definitions.ts'
import type { Session } from './session.ts'
import type { Login } from './login/login.ts'
import { AT_ONCE, openLink } from './link.ts'
import type { Link } from './link.ts'
import { compare, offered } from './pins.ts'
import type { Pins } from './pins.ts'
import type { McpRecord, Records } from './records.ts'
import type { Sample } from './sampling.ts'
import { openTail } from './tail.ts'
import type { TargetServices } from './target.ts'

export interface ConnectionServices
	extends TargetServices, Pick<Context<McpSettings>, 'log' | 'signal' | 'redactor' | 'gateway'> {
	records: Records
	sample: Sample
	login?: Login | undefined
	/** Limits the number of connections that are made at the same time: a thousand servers must not start simultaneously. */
	starting: Semaphore
}

/** Attempts for a program. A server at an address is retried indefinitely, since it may return at any time. */
const FAILURES = 5
const FIRST_DELAY_MS = 500
const GROWTH = 2
const LONGEST_DELAY_MS = 60_000
/** A connection that lasted this long resets the count of failures. In `error`, a run reconnects only this long after the failure. */
const STABLE_MS = 30_000
/** Time for which a response waits for the first attempt. */
const FIRST_CONNECTION_MS = 5_000
/** Time for which a call, or a run that needs unknown tools, waits for a connection in progress. */
const READY_LIMIT_MS = 10_000
const REFRESH_EVERY_MS = 500
/** Limit of the listed tools that cannot be offered. */
const REFUSED = 50
const STDERR_LIMIT = 64 * 1024
const MESSAGE_LIMIT = 1_000
const INSTRUCTIONS_LIMIT = 16 * 1024
/** Characters of the server's own name, version and title. */
const NAME_LIMIT = 200
/** The answer that resumes a run which waits for a login. */
export const SIGNED_IN = 'Signed in; call the tool again.'
const UNTIL_IT_FAILED = `until it has failed ${timesInARow(FAILURES)}`
const AT_INTERVALS = `at least every ${LONGEST_DELAY_MS / 1000} s, and as soon as a run needs it`
/** Minimum length of a redacted value. Shorter values may occur in ordinary text. */
const SCRUBBED_LENGTH = 8

export class ServerConnection {
	readonly record: McpRecord
	readonly agent: AgentRef
	/** Undefined for a program, and for a server whose settings exclude a login. */
	readonly login: Login | undefined
	pins: Pins
	readonly #services: ConnectionServices
	readonly #stderrTail = openTail(STDERR_LIMIT)
	readonly #calls: Calls
	readonly #waiters = new Set<() => void>()
	#status: McpStatus
	#pid: number | null = null
	/** The values that the server got last. Its output may contain them, even after its end. */
	#values: Readonly<Record<string, string>> = {}
	#link: Link | null = null
	#lastSession: Session | null = null
	#connectedAt: string | null = null
	#lastError: McpServerDetails['last_error'] = null
	/** `performance.now()` of the last error. */
	#failedAt = -Infinity
	#failures = 0
	#refused: string[] = []
	/** Aborted to stop; null while stopped. */
	#running: AbortController | null = null
	/** Settles when the server has stopped. */
	#supervision: Promise<void> = Promise.resolve()
	/** Cuts the current delay between attempts short. */
	#skipDelay: (() => void) | null = null
	/** The definitions of its tools were read at least once. */
	#hasReadTools: boolean
	#isDisposed = false
	/** It was in `error`, and reconnects only because a run needs its tools. */
	#isOnDemand = false
	/** The last logged failure, so that the same failure is not logged at every attempt. */
	#logged = ''

	/** `pins`: the stored definitions, so that the tools are known before the first connection. */
	constructor(record: McpRecord, agent: AgentRef, pins: Pins | undefined, services: ConnectionServices) {
		this.record = record
		// Clients can see the status before `start` is called.
		this.#status = record.enabled ? 'connecting' : 'disabled'
		this.agent = agent
		this.login = services.login
		this.pins = pins ?? { tools: [] }
		this.#hasReadTools = pins !== undefined
		this.#services = services
		this.#calls = openCalls({
			server: record.name,
			config: services.config,
			ready: (signal) => this.#readyLink(signal),
			needsLogin: () => this.#loginReason,
			whyLost: () => (this.#link ? '' : (this.#lastError?.message ?? '')),
			scrub: (text) => this.#scrub(text),
			hideTokens: (text) => this.#hideTokens(text),
			sample: services.sample,
		})
	}

	get status(): McpStatus {
		return this.#status
	}

	state() {
		return {
			status: this.#status,
			status_detail: this.#detail(),
			last_error: this.#lastError,
			failures: this.#failures,
			server:
				this.#lastSession &&
				mapData(this.#lastSession.server, { text: (text) => this.#scrub(text).slice(0, NAME_LIMIT) }),
			protocol_version: this.#lastSession?.protocol_version ?? null,
			instructions: this.#lastSession?.instructions
				? this.#scrub(this.#lastSession.instructions).slice(0, INSTRUCTIONS_LIMIT)
				: null,
			connected_at: this.#connectedAt,
			pid: this.#pid,
			stderr: this.#stderrTail.text((text) => this.#scrub(text)),
			not_offered: this.#refused,
		}
	}

	/** Starts to connect, after a stop in progress. `urgent`: a caller waits for the connection. */
	async start(urgent = false): Promise<void> {
		if (this.#running?.signal.aborted) await this.#supervision
		if (this.#running) return
		if (this.#isDisposed || !this.record.enabled || this.#services.signal.aborted) return this.#setStatus('disabled')
		this.#failures = 0
		this.#isOnDemand = false
		const running = (this.#running = new AbortController())
		this.#setStatus('connecting')
		this.#supervision = this.#supervise(running.signal, urgent)
			.catch((error: unknown) => {
				this.#recordFailure({ why: messageOf(error), permanent: true }, false)
				this.#services.log.error({ err: error, server: this.record.name }, 'an MCP server could not be supervised')
			})
			.finally(() => {
				if (this.#running === running) this.#running = null
			})
	}

	/** Settles when its process or session has ended. `atOnce`: without a clean shutdown. */
	async stop(atOnce = false): Promise<void> {
		this.#running?.abort(atOnce ? AT_ONCE : 'it was stopped')
		await this.#supervision
		if (!this.#running) this.#setStatus('disabled')
	}

	/** Ends the connection, if there is one, and reconnects. */
	async restart(urgent = false): Promise<void> {
		await this.stop()
		await this.start(urgent)
	}

	/** Stops it permanently: `start` has no effect afterwards. */
	dispose(atOnce = false): Promise<void> {
		this.#isDisposed = true
		return this.stop(atOnce)
	}

	/** Settles when the first attempt has ended, or after 5 s. Never rejects. */
	settled(): Promise<void> {
		return this.#waitUntil(() => this.#status !== 'connecting', FIRST_CONNECTION_MS)
	}

	/**
	 * The tools that agents get. A server keeps its tools while it reconnects, and while it needs a login: the call's error then
	 * tells the model why. A server in `error` is reconnected, and offers no tools until then.
	 */
	offered(): Definition[] {
		const isExpected = !this.#isOnDemand && (this.#status === 'connecting' || this.#status === 'reconnecting')
		const isUp = this.#status === 'connected' || this.#status === 'needs_login' || isExpected
		this.#retryAfterError()
		return isUp ? offered(this.pins) : []
	}

	/**
	 * Waits for tools that are not offered while the connection is retried: of a server at an address that was never connected, or
	 * that was in `error`. Settles without the tools after 10 s, or after a failure that a retry cannot fix. Returns undefined if
	 * there is nothing to wait for.
	 */
	awaitTools(signal: AbortSignal): Promise<void> | undefined {
		this.#retryAfterError()
		return this.#hasPendingTools() ? this.#waitUntil(() => !this.#hasPendingTools(), READY_LIMIT_MS, signal) : undefined
	}

	/** See `Calls.make`. Pauses the run if `auth.wait` is set and the server needs a login. */
	async call(tool: string, args: Record<string, unknown>, toolCall: ToolCall): Promise<unknown> {
		try {
			return await this.#calls.make(tool, args, toolCall)
		} catch (error) {
			const reason = this.#loginReason
			if (reason === null || !this.record.auth?.wait || !isFault(error, 'mcp_unavailable')) throw error
			return toolCall.pause({ question: reason, options: [SIGNED_IN], kind: 'login' })
		}
	}

	/** Connects and reconnects until `signal` aborts, a failure is final, or a login is needed. */
	async #supervise(signal: AbortSignal, urgent: boolean): Promise<void> {
		for (let first = true; !signal.aborted; first = false) {
			const began = performance.now()
			let link: Link | null = null
			let failure: { why: string; permanent: boolean }
			try {
				link = await this.#connect(signal, (urgent && first) || this.#waiters.size > 0)
				failure = { why: await link.ended, permanent: false }
			} catch (error) {
				failure = { why: messageOf(error), permanent: await isPermanent(error, this.#hasReadTools) }
			}
			const wasConnected = this.#link !== null
			this.#link = null
			this.#connectedAt = null
			if (performance.now() - began >= STABLE_MS && wasConnected) this.#failures = 0
			if (!signal.aborted) this.#recordFailure(failure, wasConnected)
			else if (wasConnected && signal.reason !== AT_ONCE)
				this.#emit('mcp.disconnected', { status: 'disabled', reason: 'it was stopped' })
			await link?.close()
			this.#pid = null
			if (this.#status === 'error' || this.#status === 'needs_login') return
			await this.#delay(signal)
		}
	}

	/** Waits before the next attempt. At an address, only for the shortest delay while a caller waits for the connection. */
	async #delay(signal: AbortSignal): Promise<void> {
		const delay =
			Math.min(FIRST_DELAY_MS * GROWTH ** (this.#failures - 1), LONGEST_DELAY_MS) * (0.8 + Math.random() * 0.4)
		if (this.#isProgram) return sleepUnless(signal, delay)
		const shortest = Math.min(FIRST_DELAY_MS, delay)
		await sleepUnless(signal, shortest)
		if (signal.aborted || this.#waiters.size > 0) return
		const cut = new AbortController()
		this.#skipDelay = () => cut.abort()
		await sleepUnless(AbortSignal.any([signal, cut.signal]), delay - shortest)
		this.#skipDelay = null
	}

	async #connect(signal: AbortSignal, urgent: boolean): Promise<Link> {
		const releasePlace = await this.#services.starting.acquire({ signal, priority: urgent ? 'urgent' : undefined })
		try {
			const refresh = openRefresher(REFRESH_EVERY_MS, async () => {
				if (this.#link && !signal.aborted) await this.#readTools(this.#link, signal).catch(() => {}) // retried later
			})
			const link = await openLink({
				record: this.record,
				agent: this.agent,
				services: this.#services,
				stderrTail: this.#stderrTail,
				hooks: {
					version: this.#services.gateway.version,
					elicit: (request) => this.#calls.elicit(request),
					...(this.record.sampling && { sample: (request, stop) => this.#calls.sample(request, stop) }),
					...(this.record.roots && { roots: this.record.roots }),
					toolsChanged: refresh,
				},
				busy: () => this.#calls.size > 0,
				opened: ({ target, values }) => {
					this.#pid = target.kind === 'stdio' ? target.process.pid : null
					this.#values = values
				},
				signal,
			})
			try {
				await this.#readTools(link, signal)
				signal.throwIfAborted()
			} catch (error) {
				await link.close()
				throw error
			}
			this.#link = link
			this.#isOnDemand = false
			this.#lastSession = link.session
			this.#connectedAt = now()
			this.#setStatus('connected')
			const { protocol_version } = link.session
			const tools = offered(this.pins).length
			this.#emit('mcp.connected', { protocol_version, tools })
			this.#logged = ''
			this.#services.log.info({ agent: this.agent.name, server: this.record.name, tools }, 'an MCP server is connected')
			return link
		} finally {
			releasePlace()
		}
	}

	async #readTools({ session }: Link, signal: AbortSignal): Promise<void> {
		const { definitions, refused } = readDefinitions(this.#scrubTools(await session.listTools(signal)))
		let held: string[] = []
		let unpinned: string[] = []
		const pins = await this.#services.records.changePins(this.agent, this.record.id, (before) => {
			const next = compare(before, definitions)
			held = next.held
			unpinned = next.refused
			return next.changed ? next.pins : undefined
		})
		this.pins = pins ?? { tools: [] }
		this.#hasReadTools = true
		this.#refused = [...refused, ...unpinned].slice(0, REFUSED)
		if (held.length === 0) return
		const message = `the MCP server "${this.record.name}" has changed tools; they are held until they are accepted`
		this.#emit('security.violation', { reason: 'mcp_tool_changed', message, tools: held })
	}

	#recordFailure({ why, permanent }: { why: string; permanent: boolean }, wasConnected: boolean): void {
		this.#failures++
		const message = this.#scrub(why).slice(0, MESSAGE_LIMIT)
		this.#lastError = { at: now(), message }
		this.#failedAt = performance.now()
		const isLast = permanent || (this.#isProgram && this.#failures >= FAILURES)
		const loginReason = this.#loginReason
		const status = loginReason !== null ? 'needs_login' : isLast ? 'error' : 'reconnecting'
		this.#setStatus(status)
		this.#logFailure(status, loginReason ?? message)
		if (wasConnected || status !== 'reconnecting') this.#emit('mcp.disconnected', { status, reason: message })
	}

	#logFailure(status: McpStatus, message: string): void {
		const failure = `${status} ${message}`
		if (failure === this.#logged) return
		this.#logged = failure
		const about = { agent: this.agent.name, server: this.record.name, status }
		this.#services.log.warn(about, `an MCP server is not connected: ${message}`)
	}

	/** Waits for the connection, and returns it. Throws `mcp_unavailable`. */
	async #readyLink(signal: AbortSignal): Promise<Link> {
		this.#retryAfterError()
		await this.#waitUntil(
			() => this.#status !== 'connecting' && this.#status !== 'reconnecting',
			READY_LIMIT_MS,
			signal,
		)
		signal.throwIfAborted()
		if (this.#link) return this.#link
		if (this.#loginReason !== null) throw new Fault('mcp_unavailable', this.#loginReason)
		throw new Fault('mcp_unavailable', `the MCP server "${this.record.name}" is not connected: ${this.#detail()}`)
	}

	/** Why a person must sign in; null if nobody must. */
	get #loginReason(): string | null {
		return this.login?.loginReason ?? null
	}

	get #isProgram(): boolean {
		return this.record.transport === 'stdio'
	}

	#hasPendingTools(): boolean {
		if (this.#hasReadTools && !this.#isOnDemand) return false
		// Nobody waits for a program that fails: it will probably fail again soon.
		return (this.#status === 'connecting' && this.#isOnDemand) || (this.#status === 'reconnecting' && !this.#isProgram)
	}

	#retryAfterError(): void {
		if (this.#status !== 'error' || performance.now() - this.#failedAt < STABLE_MS) return
		void this.start()
		this.#isOnDemand = true
	}

	#detail(): string {
		const why = this.#lastError?.message ?? ''
		switch (this.#status) {
			case 'connecting':
				return 'the gateway is still connecting to it; its tools are not known yet'
			case 'connected':
				return `connected by ${this.#lastSession?.via}${this.#loginReason === null ? '' : `; ${this.#loginReason}`}`
			case 'reconnecting':
				return `it failed ${timesInARow(this.#failures)}; it is retried ${this.#isProgram ? UNTIL_IT_FAILED : AT_INTERVALS}: ${why}`
			case 'error':
				return `it is not retried until it is restarted or a run needs it: ${why}`
			case 'needs_login':
				return this.#loginReason ?? why
			case 'disabled':
				return 'it is switched off'
		}
	}

	#emit(event_type: string, payload: Record<string, unknown>): void {
		const about = { server: this.record.name, mcp_id: this.record.id }
		void emitOrLog(this.#services, { event_type, payload: { ...about, ...payload } }, this.agent.name)
	}

	/** Redacts the values that the server got, and the agent's secrets, in the server's texts. Call it before any cut. */
	#scrub(text: string): string {
		let scrubbed = this.#hideTokens(text)
		for (const [name, value] of Object.entries(this.#values)) {
			if (value.length >= SCRUBBED_LENGTH) scrubbed = scrubbed.replaceAll(value, `[${name}]`)
		}
		return this.#services.redactor.of([this.agent]).text(scrubbed, 'record')
	}

	#hideTokens(text: string): string {
		return (this.login?.secrets ?? []).reduce((all, secret) => all.replaceAll(secret, '[token]'), text)
	}

	#setStatus(status: McpStatus): void {
		this.#status = status
		for (const recheck of this.#waiters) recheck()
	}

	/** A tool whose name contains a secret loses its name, and so is refused: it could not be called by its redacted name. */
	#scrubTools(tools: unknown[]): unknown[] {
		return tools.map((tool) => {
			const scrubbed = mapData(tool, { text: (text) => this.#scrub(text) }) as { name?: unknown } | null
			return scrubbed?.name === (tool as typeof scrubbed)?.name ? scrubbed : { ...scrubbed, name: '' }
		})
	}

	async #waitUntil(condition: () => boolean, limitMs: number, signal?: AbortSignal): Promise<void> {
		if (condition() || signal?.aborted) return
		const { promise, resolve } = Promise.withResolvers<void>()
		const recheck = (): void => {
			if (condition()) resolve()
		}
		const timer = setTimeout(resolve, limitMs)
		const removeListener = signal && onAbort(signal, resolve)
		this.#waiters.add(recheck)
		this.#skipDelay?.()
		await promise
		this.#waiters.delete(recheck)
		removeListener?.()
		clearTimeout(timer)
	}
}

/**
 * Whether a retry cannot succeed. `wasReached`: the tools were read earlier, so the address is right; a 404 or 405 may come from a
 * proxy whose server is down.
 */
async function isPermanent(error: unknown, wasReached: boolean): Promise<boolean> {
	if (isFault(error, 'vault_denied', 'vault_locked', 'address_refused', 'forbidden', 'invalid_request')) return true
	if (isFault(error, 'mcp_failed')) return true // the program cannot be started, or the server supports other revisions only
	const { statusOfError } = await import('./session.ts')
	const status = statusOfError(error) ?? 0
	return [401, 403, 410].includes(status) || (!wasReached && [404, 405].includes(status))
}

function timesInARow(count: number): string {
	return count === 1 ? 'once' : `${count} times in a row`
}

function sleepUnless(signal: AbortSignal, ms: number): Promise<void> {
	return sleep(ms, undefined, { signal }).catch(() => {}) // the caller checks the signal
}
