/** One skill host: the process, its pipe, one order at a time, and its end. */
import { spawn } from 'node:child_process'
import type { Duplex } from 'node:stream'
import { fromLines, programLimits, toLine } from '../../sandbox/host-protocol.ts'
import type {
	CallMessage,
	CheckOrder,
	HostFailure,
	ProgramOrder,
	ProgramOutcome,
	ToHost,
} from '../../sandbox/host-protocol.ts'
import type { HostCommand } from './host-command.ts'

export interface Host {
	readonly pid: number
	/** Settles when it accepts orders; rejects if it dies before that. */
	readonly ready: Promise<void>
	/** False once it is dead or has been ended. */
	readonly alive: boolean
	/**
	 * Settles with the outcome of the order; a host that dies or violates the protocol yields `sandbox_crash`. `waits`: the
	 * program begins to wait only (true), or computes again.
	 */
	work(
		order: ProgramOrder | CheckOrder,
		asked: (message: CallMessage) => boolean,
		waits?: (only: boolean) => void,
	): Promise<ProgramOutcome>
	/** Settles when the process has read it, or has ended. */
	send(message: ToHost): Promise<void>
	/** Ends the current order with this outcome, and the process with it. */
	end(why?: ProgramOutcome): void
	/** Settles when the process and everything in it has ended. */
	readonly gone: Promise<void>
}

const codes = new Set<unknown>(['skill_failed', 'skill_invalid', 'sandbox_timeout', 'sandbox_memory', 'sandbox_crash'])
const kinds = new Set<unknown>(['primitive', 'fetch', 'secret', 'log'])
/** More messages than a correct host sends about one order. */
const MAX_STRAYS = programLimits.calls + programLimits.log_lines
/** A program waits and computes again at most once for each call and timer. */
const MAX_CHANGES = 2 * programLimits.calls + 2
const crashed = (how: string): ProgramOutcome => ({ ok: false, code: 'sandbox_crash', message: `its process ${how}` })

/** Throws if no pipes can be made. */
export function startHost({ file, args, env, cwd, program }: HostCommand): Host {
	const child = spawn(file, args, {
		stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
		env,
		cwd,
		windowsHide: true,
		// A terminal sends Ctrl-C to the process group, but a call may still complete while the gateway stops.
		detached: process.platform !== 'win32',
	})
	const pipe = child.stdio?.[3] as Duplex | undefined
	if (!pipe) {
		child.on('error', () => {}) // says the same
		throw new Error('the gateway has too many open files')
	}
	child.stdin?.on('error', () => {}) // its exit event has the reason
	child.stdin?.end(program)
	const ready = Promise.withResolvers<void>()
	const gone = Promise.withResolvers<void>()
	let alive = true
	let readies = 0
	let strays = 0
	let job:
		| {
				id: number
				asked: (message: CallMessage) => boolean
				waits: ((only: boolean) => void) | undefined
				isWaiting: boolean
				changes: number
				settle: (outcome: ProgramOutcome) => void
		  }
		| undefined
	ready.promise.catch(() => {}) // its callers handle it; there may be none

	const settle = (outcome: ProgramOutcome): void => {
		job?.settle(outcome)
		job = undefined
	}
	const end = (why: ProgramOutcome = crashed('was ended')): void => {
		alive = false
		child.kill('SIGKILL')
		settle(why)
	}
	const left = (how: string): void => {
		alive = false
		pipe.destroy()
		ready.reject(new Error(`the skill host ${how} before it was ready`))
		gone.resolve()
		settle(crashed(how))
	}
	child.on('exit', (code, signal) => left(signal ? `was killed by ${signal}` : `ended with code ${code}`))
	child.on('error', (error) => left(`could not be started: ${error.message}`))
	pipe.on('error', () => {}) // its exit event has the reason
	pipe.on(
		'data',
		fromLines((message) => {
			if (alive && !receive(message)) end(crashed('sent an invalid message'))
		}),
	)

	function receive(message: unknown): boolean {
		if (typeof message !== 'object' || message === null) return false
		const { kind, id, ...rest } = message as Record<string, unknown>
		if (kind === 'ready') {
			ready.resolve()
			return ++readies === 1
		}
		// Late messages about an order that has ended meanwhile.
		if (!job || id !== job.id) return Number.isInteger(id) && ++strays <= MAX_STRAYS
		if (kind === 'done') {
			if (rest.ok === true && typeof rest.value === 'string') settle({ ok: true, value: rest.value })
			else if (rest.ok === false && codes.has(rest.code) && typeof rest.message === 'string') {
				settle({ ok: false, code: rest.code as HostFailure, message: rest.message })
			} else return false
			return true
		}
		if (kind === 'waits' || kind === 'computes') {
			if (job.isWaiting === (kind === 'waits') || ++job.changes > MAX_CHANGES) return false
			job.isWaiting = !job.isWaiting
			job.waits?.(job.isWaiting)
			return true
		}
		if (kind !== 'call' || !kinds.has(rest.what) || !Number.isInteger(rest.call) || typeof rest.body !== 'string')
			return false
		return job.asked(message as CallMessage)
	}

	return {
		pid: child.pid ?? 0,
		ready: ready.promise,
		gone: gone.promise,
		get alive() {
			return alive
		},
		work(order, asked, waits) {
			if (!alive) return Promise.resolve(crashed('is gone'))
			const { promise, resolve } = Promise.withResolvers<ProgramOutcome>()
			job = { id: order.id, asked, waits, isWaiting: false, changes: 0, settle: resolve }
			strays = 0
			pipe.write(toLine(order))
			return promise
		},
		send(message) {
			if (!alive) return Promise.resolve()
			return new Promise((resolve) => pipe.write(toLine(message), () => resolve()))
		},
		end,
	}
}
