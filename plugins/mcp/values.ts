/** Secrets that are sent to a server: in `env`, `headers` and `url` for a connection, and in the arguments of calls. */
import { Fault } from '../../core/errors.ts'
import type { AgentRef, Context, ToolCall } from '../../core/plugin.ts'
import type { SecretReading } from '../vault/contract.ts'
import type { McpValue } from './contract.ts'
import type { McpRecord } from './records.ts'

type ValueDeps = Pick<Context, 'use' | 'emit'>

/** Encrypts the values for a new record. `url`: of a server over HTTP; only its handles are read, since it is stored as it is. */
export async function sealValues(
	{ wanted, url }: { wanted: Record<string, McpValue>; url: string | undefined },
	id: string,
	ctx: Pick<Context, 'use' | 'find'>,
): Promise<Pick<McpRecord, 'names' | 'values' | 'secrets'>> {
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
 * The values of `env` or `headers`, and the address of a server over HTTP, with the values of secrets. Throws `vault_denied` if the
 * agent has no grant for a secret or the grant's hosts do not include the server, and `forbidden` if the caller who added the
 * server may not have secrets sent to it.
 */
export async function openValues(
	record: McpRecord,
	agent: AgentRef,
	ctx: ValueDeps,
): Promise<{ values: Record<string, string>; url?: URL }> {
	const { id, url, values, secrets } = record
	if (secrets.length > 0 && !record.secrets_allowed) throw notAllowed(record)
	const reading = readingOf(record, agent, emitter(agent, ctx))
	const vault = () => ctx.use('vault')
	const opened = values && (JSON.parse(await vault().unseal(values, aboutOf(id))) as Record<string, string>)
	return {
		values: opened ? await vault().fill(opened, reading) : {},
		...(url !== undefined && { url: new URL(await filledUrl(url, secrets, reading, ctx)) }),
	}
}

/**
 * The arguments of a call, with the values of secrets. Throws `vault_denied` like `openValues`, and also if the caller who added
 * the server may not have secrets sent to it.
 */
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

/** The value of a secret of `auth`, which is sent only to `endpoint`. Throws as `openValues`. */
export async function readSecret(
	secret: string,
	record: McpRecord,
	agent: AgentRef,
	endpoint: URL,
	ctx: ValueDeps,
): Promise<string> {
	if (!record.secrets_allowed) throw notAllowed(record)
	const reading = readingOf(record, agent, emitter(agent, ctx))
	return (await ctx.use('vault').read(secret, { ...reading, outlet: { url: endpoint, keepTo() {} } })).value
}

function notAllowed({ secrets }: McpRecord): Fault {
	return new Fault(
		'forbidden',
		`its settings refer to secrets (${secrets.join(', ')}), and it was added by a caller without the scope vault:write; remove it, and add it again with a token that has this scope`,
	)
}

function readingOf({ name, url }: McpRecord, agent: AgentRef, emit: SecretReading['emit']): SecretReading {
	const keepTo = (): void => {} // nothing to do: the SDK's transports follow redirects only within the server's origin
	const address = url === undefined ? null : URL.parse(url)
	return { agent, via: `mcp:${name}`, emit, ...(address && { outlet: { url: address, keepTo } }) }
}

/** Ignores failures: if the store refuses writes, reading the secret fails with that error. */
function emitter(agent: AgentRef, { emit }: Pick<Context, 'emit'>): SecretReading['emit'] {
	return (event) => void emit(event, agent.name).catch(() => {})
}

/** Values are URL-encoded, and a host cannot contain a handle. So a value cannot change the host. */
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
