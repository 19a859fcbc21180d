/**
 * The protocol between two gateways for lending threads: a waiting one, the lender, connects to the working one, the borrower.
 *
 *     GET /threads?version=0.2.0 HTTP/1.1
 *     Connection: Upgrade
 *     Upgrade: svc-threads/1
 *     svc-forwarded: …                    (proof.ts; made once, for this tenure)
 *
 * After `101 Switching Protocols` the lender starts a TLS handshake (secure.ts), and then both send frames (frames.ts). The borrower
 * keeps all authority: a lent thread has no more rights than a local one.
 */
import type { FromThread, ToThread } from '../../../../core/protocol.ts'

/** A change that an earlier version does not understand gets another number. */
export const PROTOCOL = 'svc-threads/1'
const PATH = '/threads'

/** The request target. Gateways of different versions do not lend threads to each other, since the messages of a thread have no version. */
export function targetOf(version: string): string {
	return `${PATH}?version=${encodeURIComponent(version)}`
}

/** The method in the proof. It differs from that of requests, so that the proof of a forwarded request is not valid here. */
export const SIGNED_METHOD = `GET ${PROTOCOL}`

/** Limit of threads of one gateway, as in its settings (`workers.threads`). */
export const MAX_THREADS = 64
export const MAX_RUNS_PER_THREAD = 1024

export interface Hello {
	kind: 'hello'
	/** The lender's machine and process, for log messages. */
	name: string
	/** Threads have the numbers 1 to this. */
	threads: number
	/** Runs that one thread executes in parallel. */
	runs_per_thread: number
}

export type FromLender =
	/** First message. */
	| Hello
	| { kind: 'said'; thread: number; said: FromThread }
	/** A thread replaces one that ended. */
	| { kind: 'opened'; thread: number }
	| { kind: 'ended'; thread: number; reason: string }
	/** The lender is stopping and accepts no further runs. */
	| { kind: 'leaving' }

export type FromBorrower =
	/** Messages for a thread that has ended meanwhile are dropped. */
	{ kind: 'post'; thread: number; message: ToThread } | { kind: 'terminate'; thread: number }
