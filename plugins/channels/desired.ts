/** What a channel needs to connect: its adapter, validated config and token, or the reason why it cannot connect. */
import { isFault, messageOf } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { Secret } from '../vault/contract.ts'
import { checkAccess } from './access.ts'
import type { Adapter, Adapters } from './adapters.ts'
import type { ChannelSettings } from './contract.ts'
import type { ChannelRecord } from './directory.ts'

interface ValidChannel {
	adapter: Adapter
	/** Validated, with defaults. */
	config: Record<string, unknown>
	/** The stored config as JSON. */
	settings: string
}

/** What a connection is opened with. */
export interface ConnectionSettings extends ValidChannel {
	token: string
}

/** `isTemporary`: the reason may disappear without an event, so check again later. */
export type DesiredConnection = ConnectionSettings | (ValidChannel & { blocked: string; isTemporary: boolean })

/** Problems that only a change can fix. An event reports that change. */
const permanent = ['not_found', 'forbidden', 'vault_locked', 'store_damaged'] as const

/** For one reconciliation: lists secrets only once. The function returns undefined if no running plugin provides the type. */
export function desiredIn(
	{ use, config }: Pick<Context<ChannelSettings>, 'use' | 'config'>,
	adapters: Adapters,
	currentOf: (channel_id: string) => ConnectionSettings | undefined,
): (record: ChannelRecord) => Promise<DesiredConnection | undefined> {
	let listing: Promise<Secret[]> | undefined
	return async (record) => {
		const adapter = adapters.all.get(record.type)
		if (!adapter) return undefined
		const settings = JSON.stringify(record.config)
		const checked = adapter.check(record.config)
		if ('errors' in checked) {
			const blocked = checked.errors.map(({ message }) => message).join('; ')
			return { adapter, config: record.config, settings, blocked, isTemporary: false }
		}
		const about = { adapter, config: checked.config, settings }
		try {
			const vault = use('vault')
			if (!record.trusted) await checkAccess(record, adapter, await (listing ??= vault.secrets.list()), config)
			return { ...about, token: await vault.open(record.bot_token_ref) }
		} catch (error) {
			const current = currentOf(record.id)
			// A temporarily unavailable vault is no reason to close a working connection.
			if (current?.adapter === adapter && isFault(error, 'vault_locked', 'unavailable'))
				return { ...about, token: current.token }
			return { ...about, blocked: messageOf(error), isTemporary: !isFault(error, ...permanent) }
		}
	}
}
