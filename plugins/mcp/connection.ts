/**
 * One server of one agent: connects, reconnects after a loss, and knows its tools.
 *
 * Failed attempts and connections are retried with growing delays: at an address without end, a program five times in a row.
 * After that, or a failure that a retry cannot fix, it stays in `error` until it is restarted, its secrets change, or a run
 * needs its tools.
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
import { loadSdk } from './sdk.ts'
import { openTail } from './tail.ts'
import type { TargetServices } from './target.ts'

export interface ConnectionServices
	extends TargetServices, Pick<Context<McpSettings>, 'log' | 'signal' | 'redactor' | 'gateway'> {
	records: Records
	sample: Sample
	login?: Login | undefined
	/** Limits how many connections are made at the same time: a thousand servers must not start simultaneously. */
	starting: Semaphore
}

/** Of a program. A server at an address may be started again at any time. */
const FAILURES = 5
const FIRST_DELAY_MS = 500
const GROWTH = 2
const LONGEST_DELAY_MS = 60_000
/** A connection that lasted this long was healthy; after a failure, a run reconnects no earlier than this. */
const STABLE_MS = 30_000
/** How long an answer waits for a first connection. */
const FIRST_CONNECTION_MS = 5_000
/** How long a call, or a run that does not know the tools yet, waits for a connection in progress. */
const READY_LIMIT_MS = 10_000
const REFRESH_EVERY_MS = 500
/** Limit of reported tools that cannot be offered. */
const REFUSED = 50
const STDERR_LIMIT = 64 * 1024
const MESSAGE_LIMIT = 1_000
const INSTRUCTIONS_LIMIT = 16 * 1024
/** Characters of the name, the version and the title that a server gives itself. */
const NAME_LIMIT = 200
/** The answer with which a run continues that waited for a login. */
export const SIGNED_IN = 'Signed in; call the tool again.'
const UNTIL_IT_FAILED = `until it has failed ${timesInARow(FAILURES)}`
const AT_INTERVALS = `at least every ${LONGEST_DELAY_MS / 1000} s, and as soon as a run needs it`
/** Shorter values may occur in ordinary text. */
const SCRUBBED_LENGTH = 8

export class ServerConnection {
	readonly record: McpRecord
	readonly agent: AgentRef
	/** Of a server at an address that does not have a token of its own. */
	readonly login: Login | undefined
	pins: Pins
	readonly #services: ConnectionServices
	readonly #said = openTail(STDERR_LIMIT)
	readonly #calls: Calls
	readonly #waiting = new Set<() => void>()
	#status: McpStatus
	#pid: number | null = null
	/** Those that the server was given last: what it wrote may show them after its end. */
	#values: Readonly<Record<string, string>> = {}
	#link: Link | null = null
	#lastSession: Session | null = null
	#connectedAt: string | null = null
	#lastError: McpServerDetails['last_error'] = null
	/** `performance.now()` of the last error. */
	#failedAt = -Infinity
	#failures = 0
	#refused: string[] = []
	#life: AbortController | null = null
	#living: Promise<void> = Promise.resolve()
	/** Ends the current pause between attempts. */
	#hurry: (() => void) | null = null
	/** Its definitions were read once. */
	#isKnown: boolean
	#isGone = false
	/** It was in `error`, and reconnects only because a run needs it. */
	#isDoubtful = false
	/** The last logged reason, so that it is not logged again at every attempt. */
	#logged = ''

	/** `pins`: definitions accepted earlier, so that its tools are known before it is connected. */
	constructor(record: McpRecord, agent: AgentRef, pins: Pins | undefined, services: ConnectionServices) {
		this.record = record
		// It can be seen before it is started, and is not switched off.
		this.#status = record.enabled ? 'connecting' : 'disabled'
		this.agent = agent
		this.login = services.login
		this.pins = pins ?? { tools: [] }
		this.#isKnown = pins !== undefined
		this.#services = services
		this.#calls = openCalls({
			server: record.name,
			config: services.config,
			ready: (signal) => this.#ready(signal),
			needsLogin: () => this.#needed,
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
			stderr: this.#said.text((text) => this.#scrub(text)),
			not_offered: this.#refused,
		}
	}

	/** Begins to connect; while it is being stopped, once that is done. `hurry`: a caller waits for it. */
	async start(hurry = false): Promise<void> {
		if (this.#life?.signal.aborted) await this.#living
		if (this.#life) return
		if (this.#isGone || !this.record.enabled || this.#services.signal.aborted) return this.#turn('disabled')
		this.#failures = 0
		this.#isDoubtful = false
		const life = (this.#life = new AbortController())
		this.#turn('connecting')
		this.#living = this.#live(life.signal, hurry)
			.catch((error: unknown) => {
				this.#failed({ why: messageOf(error), lasting: true }, false)
				this.#services.log.error({ err: error, server: this.record.name }, 'an MCP server could not be supervised')
			})
			.finally(() => {
				if (this.#life === life) this.#life = null
			})
	}

	/** Its process or session has ended when this settles. `atOnce`: without a clean shutdown. */
	async stop(atOnce = false): Promise<void> {
		this.#life?.abort(atOnce ? AT_ONCE : 'it was stopped')
		await this.#living
		if (!this.#life) this.#turn('disabled')
	}

	/** Ends the connection, if there is one, and reconnects. */
	async restart(hurry = false): Promise<void> {
		await this.stop()
		await this.start(hurry)
	}

	/** Stops it forever: a later start has no effect. */
	dispose(atOnce = false): Promise<void> {
		this.#isGone = true
		return this.stop(atOnce)
	}

	/** Settles when the first attempt has ended, or after 5 s. */
	settled(): Promise<void> {
		return this.#until(() => this.#status !== 'connecting', FIRST_CONNECTION_MS)
	}

	/**
	 * The tools that agents get, even during a short loss of the connection, and while it needs a login: the model then learns
	 * why a call fails. A server in `error` is reconnected, and has no tools yet.
	 */
	offered(): Definition[] {
		const isExpected = !this.#isDoubtful && (this.#status === 'connecting' || this.#status === 'reconnecting')
		const isUp = this.#status === 'connected' || this.#status === 'needs_login' || isExpected
		this.#wake()
		return isUp ? offered(this.pins) : []
	}

	/**
	 * Waits for the tools of a server whose connection is being retried, and that are not offered meanwhile: those of a server at
	 * an address that nobody has reached yet, or that was in `error`. Settles without them after 10 s or another failure that a
	 * retry cannot fix; returns undefined where there is nothing to wait for.
	 */
	awaitTools(signal: AbortSignal): Promise<void> | undefined {
		this.#wake()
		return this.#isAwaited() ? this.#until(() => !this.#isAwaited(), READY_LIMIT_MS, signal) : undefined
	}

	/** See `Calls.make`. Pauses the run where it waits for a login. */
	async call(tool: string, args: Record<string, unknown>, site: ToolCall): Promise<unknown> {
		try {
			return await this.#calls.make(tool, args, site)
		} catch (error) {
			const needed = this.#needed
			if (needed === null || !this.record.auth?.wait || !isFault(error, 'mcp_unavailable')) throw error
			return site.pause({ question: needed, options: [SIGNED_IN], kind: 'login' })
		}
	}

	async #live(signal: AbortSignal, hurry: boolean): Promise<void> {
		for (let first = true; !signal.aborted; first = false) {
			const began = performance.now()
			let link: Link | null = null
			let failure: { why: string; lasting: boolean }
			try {
				link = await this.#connect(signal, (hurry && first) || this.#waiting.size > 0)
				failure = { why: await link.over, lasting: false }
			} catch (error) {
				failure = { why: messageOf(error), lasting: await isLasting(error, this.#isKnown) }
			}
			const wasConnected = this.#link !== null
			this.#link = null
			this.#connectedAt = null
			if (performance.now() - began >= STABLE_MS && wasConnected) this.#failures = 0
			if (!signal.aborted) this.#failed(failure, wasConnected)
			else if (wasConnected && signal.reason !== AT_ONCE)
				this.#emit('mcp.disconnected', { status: 'disabled', reason: 'it was stopped' })
			await link?.close()
			this.#pid = null
			if (this.#status === 'error' || this.#status === 'needs_login') return
			await this.#pause(signal)
		}
	}

	/** At an address, the shortest delay is enough while somebody waits. */
	async #pause(signal: AbortSignal): Promise<void> {
		const delay =
			Math.min(FIRST_DELAY_MS * GROWTH ** (this.#failures - 1), LONGEST_DELAY_MS) * (0.8 + Math.random() * 0.4)
		if (this.#isProgram) return sleepUnless(signal, delay)
		const shortest = Math.min(FIRST_DELAY_MS, delay)
		await sleepUnless(signal, shortest)
		if (signal.aborted || this.#waiting.size > 0) return
		const cut = new AbortController()
		this.#hurry = () => cut.abort()
		await sleepUnless(AbortSignal.any([signal, cut.signal]), delay - shortest)
		this.#hurry = null
	}

	async #connect(signal: AbortSignal, hurry: boolean): Promise<Link> {
		const releasePlace = await this.#services.starting.take(signal, hurry)
		try {
			const refresh = openRefresher(REFRESH_EVERY_MS, async () => {
				if (this.#link && !signal.aborted) await this.#readTools(this.#link, signal).catch(() => {}) // retried later
			})
			const link = await openLink({
				record: this.record,
				agent: this.agent,
				services: this.#services,
				said: this.#said,
				hooks: {
					version: this.#services.gateway.version,
					elicit: (request) => this.#calls.elicit(request),
					...(this.record.sampling && { sample: (request, stop) => this.#calls.sample(request, stop) }),
					...(this.record.roots && { roots: this.record.roots }),
					toolsChanged: refresh,
				},
				busy: () => this.#calls.size > 0,
				opened: ({ process, values }) => {
					this.#pid = process?.pid ?? null
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
			this.#isDoubtful = false
			this.#lastSession = link.session
			this.#connectedAt = now()
			this.#turn('connected')
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
		this.#isKnown = true
		this.#refused = [...refused, ...unpinned].slice(0, REFUSED)
		if (held.length === 0) return
		const message = `the MCP server "${this.record.name}" has changed tools; they are held until they are accepted`
		this.#emit('security.violation', { reason: 'mcp_tool_changed', message, tools: held })
	}

	#failed({ why, lasting }: { why: string; lasting: boolean }, wasConnected: boolean): void {
		this.#failures++
		const message = this.#scrub(why).slice(0, MESSAGE_LIMIT)
		this.#lastError = { at: now(), message }
		this.#failedAt = performance.now()
		const isLast = lasting || (this.#isProgram && this.#failures >= FAILURES)
		const needed = this.#needed
		const status = needed !== null ? 'needs_login' : isLast ? 'error' : 'reconnecting'
		this.#turn(status)
		this.#logFailure(status, needed ?? message)
		if (wasConnected || status !== 'reconnecting') this.#emit('mcp.disconnected', { status, reason: message })
	}

	#logFailure(status: McpStatus, message: string): void {
		const failure = `${status} ${message}`
		if (failure === this.#logged) return
		this.#logged = failure
		const about = { agent: this.agent.name, server: this.record.name, status }
		this.#services.log.warn(about, `an MCP server is not connected: ${message}`)
	}

	/** The connection, once it is made. */
	async #ready(signal: AbortSignal): Promise<Link> {
		this.#wake()
		await this.#until(() => this.#status !== 'connecting' && this.#status !== 'reconnecting', READY_LIMIT_MS, signal)
		signal.throwIfAborted()
		if (this.#link) return this.#link
		if (this.#needed !== null) throw new Fault('mcp_unavailable', this.#needed)
		throw new Fault('mcp_unavailable', `the MCP server "${this.record.name}" is not connected: ${this.#detail()}`)
	}

	/** Why a person must sign in, if one must. */
	get #needed(): string | null {
		return this.login?.needed ?? null
	}

	get #isProgram(): boolean {
		return this.record.transport === 'stdio'
	}

	#isAwaited(): boolean {
		if (this.#isKnown && !this.#isDoubtful) return false
		// A program that fails is not waited for: its next failure is near.
		return (this.#status === 'connecting' && this.#isDoubtful) || (this.#status === 'reconnecting' && !this.#isProgram)
	}

	#wake(): void {
		if (this.#status !== 'error' || performance.now() - this.#failedAt < STABLE_MS) return
		void this.start()
		this.#isDoubtful = true
	}

	#detail(): string {
		const why = this.#lastError?.message ?? ''
		switch (this.#status) {
			case 'connecting':
				return 'the gateway is still connecting to it; its tools are not known yet'
			case 'connected':
				return `connected by ${this.#lastSession?.via}${this.#needed === null ? '' : `; ${this.#needed}`}`
			case 'reconnecting':
				return `it failed ${timesInARow(this.#failures)}; it is retried ${this.#isProgram ? UNTIL_IT_FAILED : AT_INTERVALS}: ${why}`
			case 'error':
				return `it is not retried until it is restarted or a run needs it: ${why}`
			case 'needs_login':
				return this.#needed ?? why
			case 'disabled':
				return 'it is switched off'
		}
	}

	#emit(event_type: string, payload: Record<string, unknown>): void {
		const about = { server: this.record.name, mcp_id: this.record.id }
		void emitOrLog(this.#services, { event_type, payload: { ...about, ...payload } }, this.agent.name)
	}

	/** Redacts values that the server was given, and the agent's secrets, in its output. Call it before any cut. */
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

	#turn(status: McpStatus): void {
		this.#status = status
		for (const recheck of this.#waiting) recheck()
	}

	/** A tool whose name contains a secret cannot be called by its redacted name; it is refused like a tool without a name. */
	#scrubTools(tools: unknown[]): unknown[] {
		return tools.map((tool) => {
			const scrubbed = mapData(tool, { text: (text) => this.#scrub(text) }) as { name?: unknown } | null
			return scrubbed?.name === (tool as typeof scrubbed)?.name ? scrubbed : { ...scrubbed, name: '' }
		})
	}

	async #until(condition: () => boolean, limitMs: number, signal?: AbortSignal): Promise<void> {
		if (condition() || signal?.aborted) return
		const { promise, resolve } = Promise.withResolvers<void>()
		const recheck = (): void => {
			if (condition()) resolve()
		}
		const timer = setTimeout(resolve, limitMs)
		const stay = signal && onAbort(signal, resolve)
		this.#waiting.add(recheck)
		this.#hurry?.()
		await promise
		this.#waiting.delete(recheck)
		stay?.()
		clearTimeout(timer)
	}
}

/**
 * Is the error permanent, so that a retry cannot succeed? `wasThere`: the address is right, and a proxy in front of a server
 * that is away may say that there is nothing.
 */
async function isLasting(error: unknown, wasThere: boolean): Promise<boolean> {
	if (isFault(error, 'vault_denied', 'vault_locked', 'address_refused', 'forbidden', 'invalid_request')) return true
	if (isFault(error, 'mcp_failed')) return true // the program cannot be started, or the server supports other revisions only
	const sdk = await loadSdk()
	const status = sdk.statusOfError(error) ?? 0
	return [401, 403, 410].includes(status) || (!wasThere && [404, 405].includes(status))
}

function timesInARow(count: number): string {
	return count === 1 ? 'once' : `${count} times in a row`
}

function sleepUnless(signal: AbortSignal, ms: number): Promise<void> {
	return sleep(ms, undefined, { signal }).catch(() => {}) // who waits checks the signal
}
