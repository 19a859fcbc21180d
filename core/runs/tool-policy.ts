/** Which tools an agent may use, and which of them need a person's approval for each call (`config.tools` of the agent). */
import type { ToolDefinition } from './tool.ts'

/** Lists of patterns over the names of tools; `*` stands for any characters. */
export interface ToolPolicy {
	/** Called without approval. */
	allow?: string[]
	/** Neither offered nor called. */
	deny?: string[]
	/** Each call waits for approval. */
	ask?: string[]
}

export type Ruling = 'allow' | 'deny' | 'ask'

/** The name that people see, such as `memory.store`, `mcp__files__read` or `skill:business-days`. */
export function shownName({ name, events }: Pick<ToolDefinition, 'name' | 'events'>): string {
	const { skill, server, tool } = events?.payload ?? {}
	if (typeof skill === 'string') return `skill:${skill}`
	return typeof server === 'string' && typeof tool === 'string' ? `mcp__${server}__${tool}` : name
}

/**
 * `deny` goes before `ask`, and `ask` before `allow`. The pattern `*` alone means the tools that no other pattern names. A tool
 * that no pattern matches is allowed, or asks if it is destructive.
 */
export function rulingOn(policy: ToolPolicy | undefined, tool: ToolDefinition): Ruling {
	if (policy) {
		const names = [tool.name, shownName(tool)]
		for (const isNamed of [true, false])
			for (const ruling of ['deny', 'ask', 'allow'] as const)
				for (const pattern of policy[ruling] ?? [])
					if (isNamed !== /^\*+$/.test(pattern) && names.some((name) => matches(pattern, name))) return ruling
	}
	return tool.destructive === true ? 'ask' : 'allow'
}

/** `*` stands for any characters, also none; every other character for itself. Takes time in proportion to both lengths. */
export function matches(pattern: string, name: string): boolean {
	const parts = pattern.split('*')
	const first = parts.shift() ?? ''
	const last = parts.pop()
	if (last === undefined) return name === first
	if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false
	const end = name.length - last.length
	let at = first.length
	for (const part of parts) {
		const found = name.indexOf(part, at)
		if (found < 0 || found + part.length > end) return false
		at = found + part.length
	}
	return true
}
