/** The service: adding, showing, changing and deleting channels, and binding chats to agents. */
import { Fault } from '../../core/errors.ts'
import { suggest } from '../../config/suggest.ts'
import { newId, now } from '../../core/util/ids.ts'
import type { Context } from '../../core/plugin.ts'
import type { Credentials } from '../auth/contract.ts'
import { invalidField } from '../shared/invalid-field.ts'
import { merge } from '../shared/merge.ts'
import { checkAccess, isUnguarded } from './access.ts'
import type { Bindings } from './bindings.ts'
import type { Connections } from './connections.ts'
import type { Binding, Channel, ChannelDetails, Channels, ChannelSettings } from './contract.ts'
import type { ChannelRecord, Directory } from './directory.ts'
import type { Pairing } from './pairing.ts'
import type { Dialogue } from './parts.ts'
import { commonConfig } from './schemas.ts'

export interface ChannelParts {
	directory: Directory
	bindings: Bindings
	pairing: Pairing
	connections: Connections
	dialogue: Dialogue
}

export interface RunningChannels extends Channels {
	/** Finishes deletions that were interrupted. */
	finishDeletions(): Promise<void>
}

/** Size limit of `config` as JSON. */
const CONFIG_LIMIT_BYTES = 64 * 1024
/** Keys of `config` that determine which messages are answered. */
const ANSWER_KEYS = new Set(['answer', 'allowed_senders'])

export function channelsOf({ use, config, emit, log }: Context<ChannelSettings>, parts: ChannelParts): RunningChannels {
	const { directory, bindings, pairing, connections, dialogue } = parts

	const checkSecret = async (ref: string): Promise<void> => {
		if (await use('vault').has(ref)) return
		const message = `bot_token_ref must name a secret in the vault; there is no secret "${ref}"`
		throw invalidField('bot_token_ref', message, { hint: { route: 'POST /v1/vault/secrets', does: 'stores one' } })
	}
	const checkConfig = (type: string, wanted: Record<string, unknown>): void => {
		const bytes = Buffer.byteLength(JSON.stringify(wanted))
		if (bytes > CONFIG_LIMIT_BYTES)
			throw invalidField('config', `config is ${bytes} bytes as JSON; the limit is ${CONFIG_LIMIT_BYTES}`)
		const adapter = connections.adapters().all.get(type)
		const checked = adapter?.check(wanted)
		if (checked && 'errors' in checked)
			throw new Fault('invalid_request', checked.errors.map(({ message }) => message).join('; '), {
				errors: checked.errors,
			})
		const { error } = commonConfig.unknown().validate(wanted, { convert: false })
		if (error) throw invalidField('config', error.message)
	}
	const announcePairing = async (binding: Binding, via: 'request' | 'code'): Promise<Binding> => {
		const { binding_id, channel_id, external_chat_id, agent_id } = binding
		await emit({ event_type: 'channel.paired', payload: { channel_id, binding_id, external_chat_id, via } }, agent_id)
		if (connections.live(channel_id))
			dialogue
				.paired(channel_id, { id: external_chat_id }, agent_id)
				.catch((error: unknown) => log.warn({ err: error, channel_id }, 'a chat could not be told that it is paired'))
		return binding
	}
	const finishDeletion = async (id: string, type: string | undefined): Promise<void> => {
		await connections.drop(id)
		await dialogue.forget(id)
		await directory.sweep(id)
		if (type !== undefined) await emit({ event_type: 'channel.deleted', payload: { channel_id: id, type } })
		await directory.erase(id)
	}
	const detailed = async (record: ChannelRecord): Promise<ChannelDetails> => ({
		...view(record),
		bot_token_ref: record.bot_token_ref,
		config: record.config,
		...connections.stateOf(record),
		bindings: await bindings.list(record.id),
	})

	return {
		async create({ type, bot_token_ref, config: wanted }, caller) {
			const adapters = connections.adapters()
			const adapter = adapters.find(type)
			if (!adapter) {
				const names = [...adapters.all.values()].map(({ aliases, type }) => aliases[0] ?? type)
				const meant = suggest(type, names)
				const hint =
					meant === undefined ? 'if yours is missing, its plugin is not switched on' : `did you mean "${meant}"?`
				const known = names.join(', ') || 'none'
				throw invalidField('type', `type must be one that a running plugin provides: ${known}; ${hint}`)
			}
			checkConfig(adapter.type, wanted)
			// Last, since svc validates the other fields with a request without a token before it asks for one.
			if (bot_token_ref === undefined) {
				const message = 'bot_token_ref is required: id or name of the secret that holds the bot token'
				throw invalidField('bot_token_ref', message)
			}
			await checkSecret(bot_token_ref)
			const record: ChannelRecord = {
				id: newId(),
				type: adapter.type,
				bot_token_ref,
				config: wanted,
				trusted: isTrusted(caller),
				created_at: now(),
			}
			if (!record.trusted) await checkAccess(record, adapter, await use('vault').secrets.list(), config)
			await directory.add(record, config.max_channels)
			await emit({ event_type: 'channel.created', payload: { channel_id: record.id, type: record.type } })
			await connections.reconcile()
			return view(record)
		},
		list: async () => (await directory.list()).map(view),
		async connections() {
			const records = await directory.list()
			return records.map((record) => ({ type: record.type, connection: connections.stateOf(record).connection }))
		},
		get: async (id) => detailed(await directory.get(id)),
		async change(id, change, caller) {
			let fields: string[] = []
			const record = await directory.change(id, async (before) => {
				const next = {
					...before,
					bot_token_ref: change.bot_token_ref ?? before.bot_token_ref,
					config: merge(before.config, change.config ?? {}),
				}
				const keys = changedKeys(before, next)
				const hasToken = next.bot_token_ref === before.bot_token_ref
				fields = hasToken ? keys : ['bot_token_ref', ...keys]
				if (fields.length === 0) return before
				checkConfig(next.type, next.config)
				if (!hasToken) await checkSecret(next.bot_token_ref)
				const adapter = connections.adapters().all.get(next.type)
				// These keys do not change where anything is sent, so the channel stays as trusted as it was.
				const since = keys.some((key) => ANSWER_KEYS.has(key)) ? { heard_since: now() } : {}
				if (hasToken && keys.every((key) => isUnguarded(key, adapter))) return { ...next, ...since }
				const trusted = isTrusted(caller)
				if (!trusted) await checkAccess(next, adapter, await use('vault').secrets.list(), config)
				return { ...next, ...since, trusted }
			})
			if (fields.length > 0) await emit({ event_type: 'channel.updated', payload: { channel_id: id, fields } })
			await connections.reconcile((one) => one.id === id)
			return detailed(record)
		},
		async remove(id) {
			const { type } = await directory.close(id)
			await finishDeletion(id, type)
		},
		async finishDeletions() {
			for (const { id, record } of await directory.leftovers()) await finishDeletion(id, record?.type)
		},
		say: dialogue.say,
		bindings: async (channel_id) => bindings.list((await directory.get(channel_id)).id),
		async bind({ agent, channel_id, external_chat_id, who_may_answer, paired_by }) {
			await directory.get(channel_id)
			const chat = { chat_id: external_chat_id, who_may_answer, paired_by }
			return announcePairing(await bindings.bind(channel_id, agent, () => chat), 'request')
		},
		waiting: () => pairing.waiting(),
		pair: async (code, agent_id, caller, who_may_answer) =>
			announcePairing(await pairing.pair(code, agent_id, caller, who_may_answer), 'code'),
		async changeBinding(channel_id, binding_id, change) {
			await directory.get(channel_id)
			const binding = await bindings.change(channel_id, binding_id, change)
			const payload = { channel_id, fields: Object.keys(change), binding_id }
			await emit({ event_type: 'channel.updated', payload }, binding.agent_id)
			return binding
		},
		async unbind(channel_id, binding_id) {
			await directory.get(channel_id)
			const { agent_id, external_chat_id } = await bindings.unbind(channel_id, binding_id)
			await emit({ event_type: 'channel.unpaired', payload: { channel_id, binding_id, external_chat_id } }, agent_id)
		},
	}
}

function view({ id, type, created_at }: ChannelRecord): Channel {
	return { id, type, status: 'active', created_at }
}

function isTrusted({ scope }: Credentials): boolean {
	return scope.includes('*')
}

function changedKeys(before: ChannelRecord, next: ChannelRecord): string[] {
	const keys = new Set([...Object.keys(before.config), ...Object.keys(next.config)])
	return [...keys].filter((key) => JSON.stringify(before.config[key]) !== JSON.stringify(next.config[key]))
}
