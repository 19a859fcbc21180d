/** What the skills plugin asks of the pool of skill hosts (hosts.ts), and what the pool asks of it. */
import type { HostCallKind } from '../../core/host-protocol.ts'

export interface Program {
	code: string
	language: 'javascript' | 'typescript'
}

export interface ProgramCall {
	program: Program
	/** Checked arguments. */
	args: Record<string, unknown>
	signal: AbortSignal
	/**
	 * A call of the program's; `body` is `{name, args}`, `{url, init}` or `{name}`. Answers with plain data, for `fetch` with
	 * `{status, url, headers, body}`, 2 MiB of JSON at most; or throws a Fault, whose code and message the program gets.
	 * Settles within its own limits, and soon once the signal aborts, which it does when the program ends in any way.
	 */
	called(what: Exclude<HostCallKind, 'log'>, body: unknown, signal: AbortSignal): Promise<unknown>
	/** What the program logs; at most 100 lines of 1,000 characters a call. */
	logged(text: string): void
}

export interface ProgramHosts extends AsyncDisposable {
	/**
	 * Runs a program in a process that may die. Answers with what it returned (plain data). Throws `skill_failed` where it
	 * threw, `sandbox_timeout`, `sandbox_memory`, `sandbox_crash`, `sandbox_busy` where too many calls wait, or the reason of
	 * the signal. True when it settles: nothing of the program goes on.
	 */
	run(call: ProgramCall): Promise<unknown>
	/**
	 * Throws `skill_invalid`, saying where, for a program that does not compile, imports something, has no default export,
	 * or breaks its compiler. Nothing of it runs.
	 */
	check(program: Program): Promise<void>
	/** Gets a process ready, so that the first call does not wait for it. */
	warm(): void
}
