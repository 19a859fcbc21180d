/**
 * Bindings of chats to agents. A binding is stored in the scope of its channel, so its commit cannot require that the agent
 * exists. A binding of a deleted agent is void, and is removed after the event `agent.deleted` or at the next start.
 */
import { defined } from '../../core/util/defined.ts'
import { Fault } from '../../core/errors.ts'
import { newId, now } from '../../core/util/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { change } from '../../core/store/change.ts'
import type { Entry, Op } from '../../core/store/ports.ts'
import { invalidField } from '../shared/invalid-field.ts'
import { openAmong } from './codes.ts'
import type { OpenCode } from './codes.ts'
import type { Answerers, Binding, ChannelSettings, WhoMayAnswer } from './contract.ts'
import { ledgerOf } from './directory.ts'
import { keys, scopeOf } from './keys.ts'
import type { BoundChat } from './parts.ts'

/** Stored under the chat's id, so that a chat has only one. A second record maps the binding's id to the chat. */
export interface BindingRecord {
	binding_id: string
	agent_id: string
	agent_uid: string
	external_chat_id: string
	/** Both are absent in records of version 0.1.0. */
	who_may_answer?: WhoMayAnswer
	paired_by?: string
	created_at: string
}

export type Bindings = ReturnType<typeof bindingsOf>

/** Bindings removed in one commit: two ops each, and one for the ledger. */
const BATCH = 49
/** Ids of a chat and its containers. */
const LOOKUP_LIMIT = 17
const ID = /^[0-9a-f-]{36}$/

export function bindingsOf({ store, config, use }: Pick<Context<ChannelSettings>, 'store' | 'config' | 'use'>) {
	const hasAgent = async ({ agent_id, agent_uid }: BindingRecord): Promise<boolean> =>
		(await use('agents').find(agent_id))?.uid === agent_uid

	const ofChat = (channel_id: string, chat_id: string) => store.get<BindingRecord>(keys.chat(channel_id, chat_id))
	const chatOf = async (channel_id: string, id: string): Promise<string | undefined> => {
		if (!ID.test(id)) return undefined
		return (await store.get<{ external_chat_id: string }>(keys.binding(channel_id, id)))?.value.external_chat_id
	}
	const byId = async (channel_id: string, id: string): Promise<Entry<BindingRecord>> => {
		const chat_id = await chatOf(channel_id, id)
		const entry = chat_id === undefined ? undefined : await ofChat(channel_id, chat_id)
		if (entry?.value.binding_id === id) return entry
		const hint = { route: 'GET /v1/channels/{id}/bindings', params: { id: channel_id }, does: 'lists them' }
		throw new Fault('not_found', `this channel has no binding "${id.slice(0, 64)}"`, { hint })
	}
	/** Removes the bindings that `find` returns, and returns them. `find` may be called several times. */
	const remove = (channel_id: string, find: () => Promise<Entry<BindingRecord>[]>): Promise<BindingRecord[]> =>
		change(store, scopeOf(channel_id), async () => {
			const ledger = await ledgerOf(store, channel_id)
			const removed = await find()
			const ops = removed.flatMap(({ key, value, rev }): Op[] => [
				{ key, value: undefined, expect: rev },
				{ key: keys.binding(channel_id, value.binding_id), value: undefined },
			])
			if (removed.length > 0)
				ops.push({
					key: ledger.key,
					value: { ...ledger.value, bindings: ledger.value.bindings - removed.length },
					expect: ledger.rev,
				})
			return { ops, result: removed.map(({ value }) => value) }
		})

	return {
		async list(channel_id: string): Promise<Binding[]> {
			const found: BindingRecord[] = []
			for await (const { value } of store.list<BindingRecord>(keys.chats(channel_id)))
				if (await hasAgent(value)) found.push(value)
			return found
				.toSorted((a, b) => (a.binding_id < b.binding_id ? -1 : 1)) // ids sort by time
				.map((record) => view(channel_id, record))
		},
		/** The first binding of these ids whose agent still exists. */
		async bound(channel_id: string, chat_ids: readonly string[]): Promise<BoundChat | undefined> {
			for (const chat_id of chat_ids.slice(0, LOOKUP_LIMIT)) {
				const record = (await ofChat(channel_id, chat_id))?.value
				if (!record || !(await hasAgent(record))) continue
				const { binding_id, agent_id, agent_uid, external_chat_id, paired_by, created_at } = record
				const isLimited = answerersOf(record) === 'paired' && paired_by !== undefined
				return {
					binding_id,
					agent: { name: agent_id, uid: agent_uid },
					external_chat_id,
					...(isLimited && { answered_by: paired_by }),
					created_at,
				}
			}
			return undefined
		},
		/**
		 * Binds the chat that `chatIn` returns. `chatIn` gets the channel's open codes and may throw. The same commit deletes the
		 * codes of the chat. Throws `not_found`, `already_exists`, and `conflict` if the channel has reached its limit.
		 */
		async bind(
			channel_id: string,
			agent: AgentRef,
			chatIn: (open: readonly OpenCode[]) => Answerers & { chat_id: string },
		): Promise<Binding> {
			const record = await change(store, scopeOf(channel_id), async () => {
				const [ledger, codes] = await Promise.all([
					ledgerOf(store, channel_id),
					store.get<OpenCode[]>(keys.codes(channel_id)),
				])
				const open = openAmong(codes?.value ?? [], Date.now())
				const { chat_id, ...answerers } = chatIn(open)
				const before = await ofChat(channel_id, chat_id)
				if (before && (await hasAgent(before.value))) {
					const { agent_id, binding_id } = before.value
					const hint = {
						route: 'DELETE /v1/channels/{id}/bindings/{binding_id}',
						params: { id: channel_id, binding_id },
						does: 'removes the binding',
					}
					throw new Fault('already_exists', `chat "${chat_id}" is already bound to agent "${agent_id}"`, { hint })
				}
				const { bindings } = ledger.value
				if (!before && bindings >= config.max_bindings)
					throw new Fault(
						'conflict',
						`this channel has ${bindings} bindings, which is the limit (channels.max_bindings); delete one first`,
					)
				const created = { agent_id: agent.name, agent_uid: agent.uid, external_chat_id: chat_id, created_at: now() }
				const made = withAnswerers({ binding_id: newId(), ...created }, answerers)
				const ops: Op[] = [
					{ key: keys.chat(channel_id, chat_id), value: made, expect: before?.rev ?? null },
					{ key: keys.binding(channel_id, made.binding_id), value: { external_chat_id: chat_id }, expect: null },
					{ key: ledger.key, value: { bindings: before ? bindings : bindings + 1 }, expect: ledger.rev },
				]
				if (before) ops.push({ key: keys.binding(channel_id, before.value.binding_id), value: undefined })
				if (codes) {
					const others = open.filter((code) => code.chat_id !== chat_id)
					ops.push({ key: codes.key, value: others, expect: codes.rev })
				}
				return { ops, result: made }
			})
			return view(channel_id, record)
		},
		/** Undefined if the channel has no such binding. */
		chatOf,
		/** As `Channels.changeBinding`. */
		async change(channel_id: string, binding_id: string, wanted: Answerers): Promise<Binding> {
			const record = await change(store, scopeOf(channel_id), async () => {
				await ledgerOf(store, channel_id)
				const { key, value, rev } = await byId(channel_id, binding_id)
				const result = withAnswerers(value, wanted)
				return { ops: [{ key, value: result, expect: rev }], result }
			})
			return view(channel_id, record)
		},
		/** Returns the binding that was removed. Throws `not_found`. */
		async unbind(channel_id: string, binding_id: string): Promise<Binding> {
			const [record] = await remove(channel_id, async () => [await byId(channel_id, binding_id)])
			return view(channel_id, record as BindingRecord)
		},
		/** Removes the bindings of deleted agents. */
		async sweep(channel_id: string): Promise<void> {
			const chats: string[] = []
			for await (const { value } of store.list<BindingRecord>(keys.chats(channel_id)))
				if (!(await hasAgent(value))) chats.push(value.external_chat_id)
			for (let at = 0; at < chats.length; at += BATCH)
				await remove(channel_id, async () => {
					const entries = await Promise.all(chats.slice(at, at + BATCH).map((chat) => ofChat(channel_id, chat)))
					const found = entries.filter((entry) => entry !== undefined)
					// Some may have been bound again in the meantime.
					const keep = await Promise.all(found.map(({ value }) => hasAgent(value)))
					return found.filter((_, n) => !keep[n])
				})
		},
	}
}

/** Throws `invalid_request` for `paired` if it is unknown who paired the chat. */
function withAnswerers(record: BindingRecord, { who_may_answer, paired_by }: Answerers): BindingRecord {
	const next: BindingRecord = { ...record, ...defined({ who_may_answer, paired_by }) }
	if (next.who_may_answer === 'paired' && next.paired_by === undefined) {
		const message = 'it is not known who paired this chat; give paired_by, the id of a user, as /whoami shows it'
		throw invalidField('paired_by', message)
	}
	return next
}

/** The default is everyone if it is unknown who paired the chat, as in records of version 0.1.0. */
function answerersOf({ who_may_answer, paired_by }: BindingRecord): WhoMayAnswer {
	return who_may_answer ?? (paired_by === undefined ? 'anyone' : 'paired')
}

function view(channel_id: string, record: BindingRecord): Binding {
	const { binding_id, agent_id, external_chat_id, paired_by = null, created_at } = record
	const who_may_answer = answerersOf(record)
	return { binding_id, agent_id, channel_id, external_chat_id, who_may_answer, paired_by, created_at }
}
