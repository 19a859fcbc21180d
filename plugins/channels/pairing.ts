/** Pairing by code: the bot gives a chat a code, and a caller with `channels:write` binds the chat with it. */
import { Fault, isFault } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { openSerialQueue } from '../../core/util/serial-queue.ts'
import type { Credentials } from '../auth/contract.ts'
import { change } from '../../core/store/change.ts'
import { invalidField } from '../shared/invalid-field.ts'
import { once } from '../shared/once.ts'
import { tryLater } from '../shared/try-later.ts'
import type { Bindings } from './bindings.ts'
import { hashOf, newCode, openAmong, readCode, withCode } from './codes.ts'
import type { OpenCode } from './codes.ts'
import type { Binding, WaitingChat, WhoMayAnswer } from './contract.ts'
import type { ChannelRecord, Directory } from './directory.ts'
import { ledgerOf } from './directory.ts'
import { keys, scopeOf } from './keys.ts'

export type Pairing = ReturnType<typeof pairingOf>

const WAITING_LIMIT = 100
const USED_LIMIT = 1_000
const SHOWN_LIMIT = 200
/** Wrong codes are counted for this time. */
const WINDOW_S = 60
const CALLER_ATTEMPTS = 5
const TOTAL_ATTEMPTS = 100
const ALL = 'all'

export function pairingOf({ store, use, emit }: Context, directory: Directory, bindings: Bindings) {
	const attempts = openAttempts()
	/** Codes that were used recently. Sending one again does not count as a wrong code, since it was not guessed. */
	const used = new BoundedMap<string, true>(USED_LIMIT)
	// Serial, so that each wrong code is counted before the next one is checked.
	const queue = openSerialQueue(WAITING_LIMIT, () =>
		tryLater('rate_limited', 'too many pairings are waiting; try again', 1),
	)

	const openIn = async (channel_id: string): Promise<OpenCode[]> =>
		openAmong((await store.get<OpenCode[]>(keys.codes(channel_id)))?.value ?? [], Date.now())
	/** The channel in which this code is open. */
	const channelOf = async (code: string): Promise<ChannelRecord | undefined> => {
		for (const channel of await directory.list()) {
			const hash = hashOf(channel.id, code)
			if ((await openIn(channel.id)).some((one) => one.hash === hash)) return channel
		}
		return undefined
	}
	const agentFor = async (named: AgentRef | undefined, { config }: ChannelRecord): Promise<AgentRef> => {
		if (named) return named
		if (typeof config.agent_id === 'string') {
			const agent = await use('agents').find(config.agent_id)
			if (agent) return agent
			throw invalidField(
				'agent_id',
				`config.agent_id of the channel names "${config.agent_id}", and there is no such agent; give agent_id`,
			)
		}
		const agents: AgentRef[] = []
		for await (const agent of use('agents').list()) {
			agents.push(agent)
			if (agents.length > 1)
				throw invalidField('agent_id', 'there are several agents; give agent_id, or set config.agent_id of the channel')
		}
		const [only] = agents
		if (only) return only
		throw invalidField('agent_id', 'there is no agent yet', { hint: { route: 'POST /v1/agents', does: 'creates one' } })
	}
	const bindByCode = async (text: string, named: AgentRef | undefined, who?: WhoMayAnswer): Promise<Binding> => {
		const code = readCode(text)
		const channel = code === undefined ? undefined : await channelOf(code)
		if (code === undefined || !channel) throw invalidCode()
		const hash = hashOf(channel.id, code)
		const binding = await bindings.bind(channel.id, await agentFor(named, channel), (open) => {
			const found = open.find((one) => one.hash === hash)
			if (found) return { chat_id: found.chat_id, paired_by: found.by, who_may_answer: who }
			throw invalidCode() // it has just expired, or the channel was deleted
		})
		used.set(code, true)
		return binding
	}

	return {
		/**
		 * Creates a code for a chat at the request of the user `by`. A chat has at most three: the oldest is dropped. Throws
		 * `not_found` for a deleted channel.
		 */
		issue: (channel_id: string, chat_id: string, by: string): Promise<{ code: string; expires_at: string }> =>
			change(store, scopeOf(channel_id), async () => {
				const [ledger, codes] = await Promise.all([
					ledgerOf(store, channel_id),
					store.get<OpenCode[]>(keys.codes(channel_id)),
				])
				const now = Date.now()
				const code = newCode()
				const added = { hash: hashOf(channel_id, code), chat_id, by }
				const value = withCode(openAmong(codes?.value ?? [], now), added, now)
				return {
					ops: [
						{ key: keys.codes(channel_id), value, expect: codes?.rev ?? null },
						{ key: ledger.key, check: true, expect: ledger.rev }, // codes must not outlive their channel
					],
					result: { code, expires_at: value.at(-1)?.expires_at ?? '' },
				}
			}),
		/** See `Channels.pair`. */
		pair: (
			code: string,
			agent_id: string | undefined,
			caller: Credentials,
			who_may_answer?: WhoMayAnswer,
		): Promise<Binding> =>
			queue.run(async () => {
				const who = caller.token_id ?? 'local'
				await attempts.check(who)
				const named = agent_id === undefined ? undefined : await use('agents').get(agent_id)
				try {
					return await bindByCode(code, named, who_may_answer)
				} catch (error) {
					if (!isFault(error, 'pairing_invalid') || used.has(readCode(code) ?? '')) throw error
					if (await attempts.failed(who)) {
						const payload = { reason: 'pairing_codes', message: error.message, token_id: caller.token_id }
						await emit({ event_type: 'security.violation', payload })
					}
					throw error
				}
			}),
		/** See `Channels.waiting`. */
		async waiting(): Promise<WaitingChat[]> {
			const found: WaitingChat[] = []
			for (const { id: channel_id } of await directory.list()) {
				const open = await openIn(channel_id)
				if (open.length === 0) continue
				const bound = new Set((await bindings.list(channel_id)).map(({ external_chat_id }) => external_chat_id))
				const newest = new Map(open.map((one) => [JSON.stringify([one.chat_id, one.by]), one]))
				for (const { chat_id, by = null, expires_at } of newest.values())
					if (!bound.has(chat_id)) found.push({ channel_id, external_chat_id: chat_id, asked_by: by, expires_at })
			}
			return found.toSorted((a, b) => (a.expires_at > b.expires_at ? -1 : 1)).slice(0, SHOWN_LIMIT)
		},
		/** Deletes the expired codes of a channel. */
		sweep: (channel_id: string): Promise<void> =>
			change(store, scopeOf(channel_id), async () => {
				const codes = await store.get<OpenCode[]>(keys.codes(channel_id))
				const open = openAmong(codes?.value ?? [], Date.now())
				if (!codes || open.length === codes.value.length) return { result: undefined }
				const value = open.length > 0 ? open : undefined
				return { ops: [{ key: codes.key, value, expect: codes.rev }], result: undefined }
			}),
	}
}

/** The same error for every reason, so that it reveals nothing. */
function invalidCode(): Fault {
	return new Fault('pairing_invalid', 'this pairing code is wrong, used or expired; the bot gives the chat a new one')
}

/** Limits wrong codes per caller, and in total, since a caller may have many tokens. */
function openAttempts() {
	// Loaded with the first code, so that an idle gateway does not load it.
	const wrong = once(async () => {
		const { RateLimiterMemory } = await import('rate-limiter-flexible')
		return new RateLimiterMemory({ points: TOTAL_ATTEMPTS, duration: WINDOW_S })
	})
	return {
		/** Throws `rate_limited` after too many wrong codes, even for a correct one. */
		async check(caller: string): Promise<void> {
			const counts = await wrong()
			for (const [name, limit] of [
				[caller, CALLER_ATTEMPTS],
				[ALL, TOTAL_ATTEMPTS],
			] as const) {
				const count = await counts.get(name)
				if (!count || count.consumedPoints < limit) continue
				const seconds = Math.max(1, Math.ceil(count.msBeforeNext / 1000))
				throw tryLater('rate_limited', `too many wrong pairing codes; wait ${seconds} s before you try again`, seconds)
			}
		},
		/** Counts a wrong code; call it only after `check`. Returns true if the caller has no attempts left for now. */
		async failed(caller: string): Promise<boolean> {
			const counts = await wrong()
			await counts.penalty(ALL)
			return (await counts.penalty(caller)).consumedPoints >= CALLER_ATTEMPTS
		},
	}
}
