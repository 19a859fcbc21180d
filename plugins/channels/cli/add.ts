/** Stores a bot token in the vault, and creates the channel that uses it. */
import { setTimeout as delay } from 'node:timers/promises'
import { defined } from '../../../core/util/defined.ts'
import { settingsOf } from '../../../core/cli/assignments.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { orNull, permitted } from '../../../core/cli/or-null.ts'
import { secretInput } from '../../../core/cli/secret-input.ts'
import { merge } from '../../shared/merge.ts'
import type { Channel, ChannelDetails } from '../contract.ts'
import { readChannel } from './find.ts'

export interface ChannelOptions {
	agent?: string
	answer?: string
	allow?: string[]
	apiRoot?: string
	/** The platform's own settings, as `key=value`. */
	set?: string[]
	/** Name of a secret in the vault. */
	secret?: string
	/** Name for the new secret. */
	name?: string
}

/** How long to wait for the first connection. */
const CONNECT_MS = 15_000
const POLL_MS = 200

/** Returns the channel once it is connected, or after a timeout. */
export async function addChannel(cli: Cli, platform: string, options: ChannelOptions): Promise<ChannelDetails> {
	// Plugins have hyphens in their names, platforms do not.
	const type = platform.replaceAll('-', '_')
	const { secret, name = `${type.toUpperCase().replaceAll(/\W/g, '_')}_TOKEN` } = options
	for (const given of [secret, options.name]) if (given !== undefined) mustBeName(given)
	if (secret !== undefined && options.name !== undefined)
		throw new CliError('usage', 'give either --name, for a new secret, or --secret, for one in the vault')
	const config = merge({}, configOf(options)) // without the keys that are null
	if (secret === undefined) await checkWithoutToken(cli, { type, config })
	await checkAgent(cli, config.agent_id)
	if (secret === undefined) await checkUnused(cli, name)
	const made = secret === undefined ? await storeToken(cli, name) : undefined
	using progress = cli.out.progress(`Connecting ${type}`)
	const body = { type, bot_token_ref: secret ?? name, config }
	let channel: Channel
	try {
		channel = await cli.api.request<Channel>('POST', '/v1/channels', body)
	} catch (error) {
		// Otherwise the unused secret would conflict with the next attempt.
		if (made !== undefined && error instanceof CliError && error.code !== undefined)
			await cli.api.request('DELETE', path`/v1/vault/secrets/${made}`).catch(() => {})
		throw error
	}
	const connected = await settled(cli, channel.id)
	progress.done()
	return connected
}

/** Throws if the gateway would refuse the channel for a reason other than the missing token, before the user types the token. */
async function checkWithoutToken({ api }: Cli, { type, config }: { type: string; config: object }): Promise<void> {
	try {
		// A token named in the settings would create the channel now.
		await api.request('POST', '/v1/channels', { type, config: { ...config, bot_token_secret_ref: undefined } })
	} catch (error) {
		if (!(error instanceof CliError) || error.errors.every(({ path }) => path !== 'bot_token_ref')) throw error
	}
}

/** Throws if there is no such agent. The gateway accepts names of agents that do not exist yet; from a user, this is probably a typo. */
export async function checkAgent({ api }: Cli, agent: unknown): Promise<void> {
	// A token for channels may lack the permission to read agents.
	if (typeof agent === 'string') await orNull(api.request('GET', path`/v1/agents/${agent}`), ['denied'])
}

/** Throws if the vault has a secret with this name and the caller may list secrets. */
async function checkUnused({ api }: Cli, name: string): Promise<void> {
	const secrets = await permitted(api.request<{ name: string }[]>('GET', '/v1/vault/secrets'))
	if (secrets?.some((secret) => secret.name === name)) throw nameTaken(name)
}

/** The given keys of `config`; null removes a key. `present`: the config so far, for nested keys. */
export function configOf(
	{ agent, answer, allow, apiRoot, set = [] }: ChannelOptions,
	present: Record<string, unknown> = {},
): Record<string, unknown> {
	const named = { agent_id: agent, answer, allowed_senders: allow, api_root: apiRoot }
	return { ...settingsOf(set, 'port=7007 or nick.name=helper', present), ...defined(named) }
}

/** A token given instead of a name is already in the shell history. This keeps it out of the gateway's log. */
export function mustBeName(text: string): void {
	if (/^[A-Za-z0-9_.-]{1,128}$/.test(text)) return
	throw new CliError(
		'usage',
		'--secret and --name expect the name of a secret in the vault, never the token itself; without them, svc asks for the token',
	)
}

async function storeToken(cli: Cli, name: string): Promise<string> {
	const value = await secretInput(cli, 'Token of the bot')
	try {
		const body = { name, value, policy_label: 'channel' }
		return (await cli.api.request<{ id: string }>('POST', '/v1/vault/secrets', body)).id
	} catch (error) {
		if (!(error instanceof CliError) || error.code !== 'already_exists') throw error
		throw nameTaken(name, error)
	}
}

function nameTaken(name: string, cause?: unknown): CliError {
	const advice = `use it with --secret ${name}, replace its value with: svc vault set ${name}, or store the new one under another --name`
	return new CliError('conflict', `the vault already has a secret ${name}; ${advice}`, { cause })
}

/** Waits until the channel is connected, has failed, or 15 s have passed. */
export async function settled(cli: Cli, id: string): Promise<ChannelDetails> {
	const until = performance.now() + CONNECT_MS
	for (;;) {
		const channel = await readChannel(cli.api, id)
		if (channel.connection !== 'connecting' || channel.last_error !== null || performance.now() > until) return channel
		await delay(POLL_MS, undefined, { signal: cli.signal })
	}
}
