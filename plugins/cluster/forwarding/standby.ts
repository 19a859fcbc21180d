/**
 * A gateway while another one works on the data: it listens, and forwards every request to the working one. A request that arrives
 * while no gateway works waits for the next one, which may be this gateway.
 */
import type { IncomingMessage } from 'node:http'
import { Fault, messageOf } from '../../../core/errors.ts'
import type { Handler, Listeners } from '../../../core/http/listeners.ts'
import type { Address, ListenAt } from '../../../core/http/listening.ts'
import { answerSocket } from '../../../core/http/raw-answer.ts'
import type { Logger } from '../../../core/log/log.ts'
import type { GatewayAddress, ObservedLease } from '../../../core/store/ports.ts'
import { openForwarder } from './forward.ts'
import type { Outcome, Route } from './forward.ts'
import { valueOf } from './headers.ts'
import { answerProbe } from './probes.ts'
import { FORWARDED } from './proof.ts'
import type { Secret } from './proof.ts'
import { refusal, refuseRequest } from './refuse.ts'

export interface StandbyOptions {
	listeners: Listeners
	listen: Record<Address, ListenAt>
	log: Logger
	/** Reads the current secret of this home. Throws if it has none. */
	secret(): Promise<Secret>
	/** Called once it listens, or listens at one more address. */
	listening(holder: string): void
	/** Called when the working gateway or its address has changed; null if no gateway works. */
	routed(route: Route | null): void
}

/** How long a request waits for a working gateway: longer than a takeover needs (plugins/cluster/nats/lease.ts). */
const WAIT_MS = 20_000
const MAX_WAITING = 1_000
/** Between two attempts to reach the working gateway. */
const RETRY_MS = 250
const CLOSE_MS = 1_000
const unreachable = 'no gateway works on the data of the cluster at the moment, or it cannot be reached'
const notListening = 'the working gateway does not listen at this address'
const lost =
	'the working gateway went away before it answered, so the request may have been executed or not: repeat it, with the same Idempotency-Key if it starts a run'
const loop =
	'this waiting gateway received a request that another waiting gateway forwarded: the working gateway advertises a wrong address; set store.advertise there'

export function openStandby({ listeners, listen, log, secret, listening, routed }: StandbyOptions) {
	const forwarder = openForwarder()
	let route: Route | null = null
	let target: GatewayAddress | undefined
	/** False before it starts to wait, and once it works. */
	let isWaiting = false
	let changed = Promise.withResolvers<void>()
	let waitingRequests = 0

	const change = (next: Route | null): void => {
		const former = route
		route = next
		routed(next)
		if (former && next?.tenure === former.tenure) next.open = former.open
		else for (const one of former?.open ?? []) one.destroy()
		changed.resolve()
		changed = Promise.withResolvers()
	}

	const open = async (address: Address, holder: string): Promise<void> => {
		if (listeners.url(address) !== null) return
		;(await listeners.open({ [address]: listen[address] })).take()
		listening(holder)
	}

	/** False if the time is over, or too many requests wait. */
	const wait = async (until: number): Promise<boolean> => {
		const left = until - performance.now()
		if (left <= 0 || waitingRequests >= MAX_WAITING) return false
		waitingRequests++
		const later = Promise.withResolvers<void>()
		using _ = setTimeout(later.resolve, Math.min(RETRY_MS, left))
		await Promise.race([changed.promise, later.promise])
		waitingRequests--
		return true
	}

	/** Settles once the request was forwarded, handled here or refused. */
	const serve = async (
		address: Address,
		client: { readonly destroyed: boolean },
		forward: (route: Route) => Promise<Outcome>,
		here: () => void,
		refuse: (why: string) => void,
	): Promise<void> => {
		const until = performance.now() + WAIT_MS
		for (;;) {
			if (!isWaiting) return here()
			if (route && !route.urls[address]) return refuse(notListening)
			const outcome = route ? await forward(route) : 'not_sent'
			if (outcome === 'sent' || client.destroyed) return
			if (outcome === 'lost') return refuse(lost)
			if (isWaiting && !(await wait(until))) return refuse(unreachable)
		}
	}

	const isLoop = ({ rawHeaders }: IncomingMessage): boolean => valueOf(rawHeaders, FORWARDED) !== undefined

	const handler: Handler = {
		request(address, request, response) {
			if (isLoop(request)) return refuseRequest(response, loop)
			if (address === 'main' && answerProbe(request, response, () => route, forwarder)) return
			serve(
				address,
				response,
				(to) => forwarder.request(to, address, request, response),
				() => listeners.request(address, request, response),
				(why) => refuseRequest(response, why),
			).catch((error: unknown) => refuseRequest(response, messageOf(error)))
		},
		upgrade(address, request, socket, head) {
			const refuse = (why: string): void => answerSocket(socket, 503, ...refusal(why))
			if (isLoop(request)) refuse(loop)
			else
				serve(
					address,
					socket,
					(to) => forwarder.upgrade(to, address, request, socket, head),
					() => listeners.upgrade(address, request, socket, head),
					refuse,
				).catch((error: unknown) => refuse(messageOf(error)))
			return true
		},
	}

	/** Undefined if this home does not have the key of a gateway that may be dead. */
	const routeTo = async ({ id, holder, isAlive }: ObservedLease, to: GatewayAddress): Promise<Route | undefined> => {
		const { key, checkOf } = await secret().catch((error: unknown) => {
			throw new Fault(
				'config_invalid',
				`the gateway ${holder} works on the data of the cluster, and this one does not have its master key: ${messageOf(error)}; copy the folder keys from there`,
				{ cause: error },
			)
		})
		if (checkOf(id) === to.key_check)
			return {
				tenure: id,
				key,
				urls: { main: new URL(to.main), legacy: to.legacy === null ? null : new URL(to.legacy) },
				open: new Set(),
			}
		// The record may be from a dead gateway, written before the key was changed.
		if (!isAlive) return undefined
		throw new Fault(
			'config_invalid',
			`this home has a different master key than the gateway ${holder}, which works on the data of the cluster; copy the folder keys from there, or set the same key in the environment`,
		)
	}

	return {
		/**
		 * As `EngineRequest.onLeaseObserved`. Throws `config_invalid` if this gateway has a different key than the working one, and
		 * `unavailable` if it cannot listen.
		 */
		async onLeaseObserved(found: ObservedLease | null): Promise<void> {
			if (!found) {
				target = undefined
				return change(null)
			}
			if (!isWaiting) {
				isWaiting = true
				listeners.current = handler
				await open('main', found.holder)
				log.info(`waiting: the gateway ${found.holder} works on the data of the cluster; requests are forwarded to it`)
			}
			const isNew = found.id !== route?.tenure
			if (!isNew && JSON.stringify(found.address) === JSON.stringify(target)) return
			if (isNew && route) change(null)
			if (!found.address) return
			const next = await routeTo(found, found.address)
			if (!next) return
			target = found.address
			change(next)
			if (target.legacy !== null) await open('legacy', found.holder)
		},
		/** This gateway works now: waiting requests go to the current handler of the listeners. */
		served(): void {
			isWaiting = false
			change(null)
		},
		async [Symbol.asyncDispose](): Promise<void> {
			change(null)
			if (isWaiting) await listeners.close(CLOSE_MS)
			forwarder.close()
		},
	}
}
