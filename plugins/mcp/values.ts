/** The values of `env` and `headers`: sealed in the record, and with secrets filled in for a connection only. */
import type { AgentRef, Context } from '../../core/plugin.ts'
import type {} from '../vault/contract.ts'
import type { McpValue } from './contract.ts'
import type { McpRecord } from './records.ts'

type Services = Pick<Context, 'use' | 'emit'>

export type KeptValues = Pick<McpRecord, 'names' | 'values' | 'secrets'>

const HANDLE = /\{\{secret:([^{}]{1,200})\}\}/g

/** For a new record. */
export async function sealValues(
	wanted: Record<string, McpValue>,
	id: string,
	ctx: Pick<Context, 'use'>,
): Promise<KeptValues> {
	const entries = Object.entries(wanted)
	if (entries.length === 0) return { names: {}, values: null, secrets: [] }
	const texts = entries.map(([name, value]) => [name, typeof value === 'string' ? value : handleOf(value.secret)])
	const used = texts.flatMap(([, text]) => [...(text ?? '').matchAll(HANDLE)].map((match) => match[1] ?? ''))
	return {
		names: Object.fromEntries(entries.map(([name, value]) => [name, typeof value === 'string' ? null : value])),
		values: await ctx.use('vault').seal(JSON.stringify(Object.fromEntries(texts)), aboutOf(id)),
		secrets: [...new Set(used)],
	}
}

/** Throws `vault_denied` where the agent has no grant for a secret that is needed. */
export async function openValues(record: McpRecord, agent: AgentRef, ctx: Services): Promise<Record<string, string>> {
	if (record.values === null) return {}
	const vault = ctx.use('vault')
	const texts = JSON.parse(await vault.unseal(record.values, aboutOf(record.id))) as Record<string, string>
	return vault.fill(texts, {
		agent,
		via: `mcp:${record.name}`,
		emit: (event) => void ctx.emit(event, agent.name).catch(() => {}), // the read itself tells of a store that takes nothing
	})
}

function handleOf(secret: string): string {
	return `{{secret:${secret}}}`
}

function aboutOf(id: string): string {
	return `mcp:${id}`
}
