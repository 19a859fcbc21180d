/** A bot token on its way into the vault, and the channel that uses it. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import { readChannel } from './channels-find.ts'
import type { Channel, ChannelDetails } from './channels-find.ts'
import { CliError, path } from './contract.ts'
import type { Cli } from './contract.ts'
import { secretInput } from './secret-input.ts'

export interface ChannelOptions {
	agent?: string
	answer?: string
	allow?: string[]
	apiRoot?: string
	/** Name of a secret that is in the vault. */
	secret?: string
	/** Name for the secret that is made. */
	name?: string
}

/** How long the first connection is waited for. */
const CONNECT_MS = 15_000
const LOOK_MS = 200

/** Answers with the channel as it is once it is connected, or once that took too long. */
export async function addChannel(
	cli: Cli,
	type: string,
	options: ChannelOptions,
	command: Command,
): Promise<ChannelDetails> {
	const { secret, name = `${type.toUpperCase().replaceAll(/\W/g, '_')}_TOKEN` } = options
	for (const given of [secret, options.name]) if (given !== undefined) mustBeName(given)
	if (secret !== undefined && options.name !== undefined)
		throw new CliError('usage', 'give either --name, for a new secret, or --secret, for one that is in the vault')
	const made = secret === undefined ? await storeToken(cli, name, command) : undefined
	using progress = cli.out.progress(`Connecting ${type}`)
	const body = { type, bot_token_ref: secret ?? name, config: configOf(options) }
	let channel: Channel
	try {
		channel = await cli.api.request<Channel>('POST', '/v1/channels', body)
	} catch (error) {
		// Refused: nobody uses it, and it would be in the way of the next attempt.
		if (made !== undefined && error instanceof CliError && error.code !== undefined)
			await cli.api.request('DELETE', path`/v1/vault/secrets/${made}`).catch(() => {})
		throw error
	}
	const connected = await settled(cli, channel.id)
	progress.done()
	return connected
}

/** Keys of `config` that are given. */
export function configOf({ agent, answer, allow, apiRoot }: ChannelOptions): Record<string, unknown> {
	const config = { agent_id: agent, answer, allowed_senders: allow, api_root: apiRoot }
	return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined))
}

/** A token in the place of its name has been seen by others already; it must not go on to the gateway's log, too. */
export function mustBeName(text: string): void {
	if (/^[A-Za-z0-9_.-]{1,128}$/.test(text)) return
	throw new CliError(
		'usage',
		'--secret and --name take the name of a secret in the vault, never the token itself: leave them out to be asked for it',
	)
}

async function storeToken(cli: Cli, name: string, command: Command): Promise<string> {
	const value = await secretInput(cli, command, 'Token of the bot')
	try {
		const body = { name, value, policy_label: 'channel' }
		return (await cli.api.request<{ id: string }>('POST', '/v1/vault/secrets', body)).id
	} catch (error) {
		if (!(error instanceof CliError) || error.code !== 'already_exists') throw error
		const advice = `use it with --secret ${name}, or give the new one another name with --name`
		throw new CliError('conflict', `the vault has a secret ${name} already; ${advice}`, { cause: error })
	}
}

/** The channel once its connection stands or fails. */
export async function settled(cli: Cli, id: string): Promise<ChannelDetails> {
	const until = performance.now() + CONNECT_MS
	for (;;) {
		const channel = await readChannel(cli.api, id)
		if (channel.connection !== 'connecting' || channel.last_error !== null || performance.now() > until) return channel
		await delay(LOOK_MS, undefined, { signal: cli.signal })
	}
}
