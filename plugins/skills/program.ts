/** The interface between the skills plugin and the pool of skill hosts (hosts.ts). */
import type { HostCallKind } from '../../sandbox/host-protocol.ts'

export interface Program {
	code: string
	language: 'javascript' | 'typescript'
}

export interface ProgramCall {
	/** Whose share of the processes it counts for: the uid of an agent. */
	owner: string
	program: Program
	/** Checked arguments. */
	args: Record<string, unknown>
	signal: AbortSignal
	/**
	 * A call by the program; `body` is `{name, args}`, `{url, init}` or `{name}`. Returns plain data, for `fetch`
	 * `{status, url, headers, body}`, at most 2 MiB of JSON; or throws a Fault, whose code and message the program gets.
	 * Settles within its own limits, and soon after the signal aborts, which it does when the program ends in any way.
	 */
	called(what: Exclude<HostCallKind, 'log'>, body: unknown, signal: AbortSignal): Promise<unknown>
	/** Log output of the program; at most 100 lines of 1,000 characters per call. */
	logged(text: string): void
}

export interface ProgramHosts extends AsyncDisposable {
	/**
	 * Runs a program in a process that may die. Returns the program's result (plain data). Throws `skill_failed` if it
	 * threw, `sandbox_timeout`, `sandbox_memory`, `sandbox_crash`, `sandbox_busy` if too many calls wait, or the reason of
	 * the signal. When it settles, nothing of the program is running.
	 */
	run(call: ProgramCall): Promise<unknown>
	/**
	 * Throws `skill_invalid`, with the location, for a program that does not compile, imports something, has no default export,
	 * or crashes its compiler. Does not execute the program. `owner` as in ProgramCall.
	 */
	check(owner: string, program: Program): Promise<void>
	/** Prepares a process, so that the first call does not wait for it. */
	warm(): void
}
