/** Secrets that are sent to a server: in `env`, `headers` and `url`, inserted only for a connection, and in the arguments of calls. */
import { Fault } from '../../core/errors.ts'
import type { AgentRef, Context, ToolCall } from '../../core/plugin.ts'
import type { SecretReading } from '../vault/contract.ts'
import type { McpValue } from './contract.ts'
import type { McpRecord } from './records.ts'

type ValueDeps = Pick<Context, 'use' | 'emit'>

export type KeptValues = Pick<McpRecord, 'names' | 'values' | 'secrets'>

export interface OpenedValues {
	/** The values of `env` or `headers`. */
	values: Record<string, string>
	/** The address of a server over HTTP. */
	url?: URL
}

/** For a new record. `url`: see `OpenedValues`; it is stored with its handles. */
export async function sealValues(
	{ wanted, url }: { wanted: Record<string, McpValue>; url: string | undefined },
	id: string,
	ctx: Pick<Context, 'use' | 'find'>,
): Promise<KeptValues> {
	const entries = Object.entries(wanted)
	const texts = entries.map(([name, value]) => [name, typeof value === 'string' ? value : handleOf(value.secret)])
	return {
		names: Object.fromEntries(entries.map(([name, value]) => [name, typeof value === 'string' ? null : value])),
		values:
			entries.length === 0 ? null : await ctx.use('vault').seal(JSON.stringify(Object.fromEntries(texts)), aboutOf(id)),
		secrets: ctx.find('vault')?.named([...texts.map(([, text]) => text), url]) ?? [],
	}
}

/**
 * Throws `vault_denied` if the agent has no grant for a needed secret, or the grant's hosts do not include the server,
 * and `forbidden` if the caller who added the server may not have secrets sent to it.
 */
export async function openValues(record: McpRecord, agent: AgentRef, ctx: ValueDeps): Promise<OpenedValues> {
	if (record.secrets.length > 0 && !record.secrets_allowed) throw notAllowed(record)
	const reading = readingOf(record, agent, (event) => {
		void ctx.emit(event, agent.name).catch(() => {}) // the read itself reports a store that refuses writes
	})
	const { url } = record
	return {
		values: await openSealed(record, reading, ctx),
		...(url !== undefined && { url: new URL(await filledUrl(url, record.secrets, reading, ctx)) }),
	}
}

/** The arguments of a call with the values of secrets. Throws `vault_denied` like `openValues`, and for such a caller. */
export async function fillArguments(
	args: Record<string, unknown>,
	record: McpRecord,
	{ agent, emit }: Pick<ToolCall, 'agent' | 'emit'>,
	ctx: Pick<Context, 'find'>,
): Promise<Record<string, unknown>> {
	const vault = ctx.find('vault')
	const [first] = vault?.named(args) ?? []
	if (!vault || first === undefined) return args
	const reading = readingOf(record, agent, emit)
	if (record.secrets_allowed) return vault.fill(args, reading)
	emit({ event_type: 'vault.denied', payload: { secret: first, via: reading.via, reason: 'server' } })
	throw new Fault(
		'vault_denied',
		`no secret is sent to the MCP server "${record.name}": it was added by a caller without the scope vault:write; an operator can add it again with a token that has this scope`,
	)
}

/** A secret of `auth`, which goes to `endpoint` alone. Throws as `openValues`. */
export async function readSecret(
	secret: string,
	record: McpRecord,
	agent: AgentRef,
	endpoint: URL,
	ctx: ValueDeps,
): Promise<string> {
	if (!record.secrets_allowed) throw notAllowed(record)
	const reading = readingOf(record, agent, (event) => void ctx.emit(event, agent.name).catch(() => {}))
	return ctx.use('vault').fill(handleOf(secret), { ...reading, outlet: { url: endpoint, keepTo() {} } })
}

function notAllowed({ secrets }: McpRecord): Fault {
	return new Fault(
		'forbidden',
		`its settings refer to secrets (${secrets.join(', ')}), and it was added by a caller without the scope vault:write; remove it, and add it again with a token that has this scope`,
	)
}

function readingOf({ name, url }: McpRecord, agent: AgentRef, emit: SecretReading['emit']): SecretReading {
	const keepTo = (): void => {} // the SDK's transports follow redirects within the server's origin only
	const address = url === undefined ? null : URL.parse(url)
	return { agent, via: `mcp:${name}`, emit, ...(address && { outlet: { url: address, keepTo } }) }
}

async function openSealed(
	{ values, id }: McpRecord,
	reading: SecretReading,
	ctx: Pick<Context, 'use'>,
): Promise<Record<string, string>> {
	if (values === null) return {}
	const vault = ctx.use('vault')
	return vault.fill(JSON.parse(await vault.unseal(values, aboutOf(id))) as Record<string, string>, reading)
}

/** A value cannot change where the address leads: it is encoded, and an address with a handle in its host is not a URL. */
async function filledUrl(
	url: string,
	secrets: readonly string[],
	reading: SecretReading,
	ctx: Pick<Context, 'use'>,
): Promise<string> {
	let filled = url
	for (const handle of secrets.map(handleOf)) {
		if (!url.includes(handle)) continue
		filled = filled.replaceAll(handle, encodeURIComponent(await ctx.use('vault').fill(handle, reading)))
	}
	return filled
}

function handleOf(secret: string): string {
	return `{{secret:${secret}}}`
}

function aboutOf(id: string): string {
	return `mcp:${id}`
}
