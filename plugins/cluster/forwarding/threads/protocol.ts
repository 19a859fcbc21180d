/**
 * What two gateways say to each other about threads: a waiting one, the lender, connects to the working one, the borrower.
 *
 *     GET /threads?version=0.2.0 HTTP/1.1
 *     Connection: Upgrade
 *     Upgrade: svc-threads/1
 *     svc-forwarded: …                    (proof.ts; made once, for this tenure)
 *
 * After `101 Switching Protocols` the lender begins a TLS handshake (secure.ts), and then both send frames (frames.ts). The borrower
 * keeps all authority: a thread that is lent does what a thread of its own does, and gets no more.
 */
import type { FromThread, ToThread } from '../../../../core/protocol.ts'

/** A change that an earlier version does not understand gets another number. */
export const PROTOCOL = 'svc-threads/1'
const PATH = '/threads'

/** The request target. Gateways of different versions lend each other nothing: the messages of a thread have no version of their own. */
export function targetOf(version: string): string {
	return `${PATH}?version=${encodeURIComponent(version)}`
}

/** What the proof says of the request, so that the proof of a request that was forwarded proves nothing here. */
export const SIGNED_METHOD = `GET ${PROTOCOL}`

/** The most threads of one gateway, as in its settings (`workers.threads`). */
export const MOST_THREADS = 64
export const MOST_RUNS_PER_THREAD = 1024

export interface Hello {
	kind: 'hello'
	/** The lender, for people: its machine and process. */
	name: string
	/** Their numbers are 1 to this one. */
	threads: number
	/** Runs that one thread works on side by side. */
	runs_per_thread: number
}

export type FromLender =
	/** First message. */
	| Hello
	| { kind: 'said'; thread: number; said: FromThread }
	/** A thread takes the place of one that ended. */
	| { kind: 'opened'; thread: number }
	| { kind: 'ended'; thread: number; reason: string }
	/** It stops, and wants no further runs. */
	| { kind: 'leaving' }

export type FromBorrower =
	/** Messages for a thread that has ended meanwhile are dropped. */
	{ kind: 'post'; thread: number; message: ToThread } | { kind: 'terminate'; thread: number }
