/** Which tools an agent may use, and which of them need a person's approval for each call (`config.tools` of the agent). */
import { matches } from '../util/pattern.ts'
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

/**
 * `deny` goes before `ask`, and `ask` before `allow`. The pattern `*` alone means the tools that no other pattern names. A tool
 * that no pattern matches is allowed, or asks if it is destructive.
 */
export function rulingOn(
	policy: ToolPolicy | undefined,
	tool: Pick<ToolDefinition, 'name' | 'shown_as' | 'destructive'>,
): Ruling {
	if (policy) {
		const names = namesOf(tool)
		for (const isNamed of [true, false])
			for (const ruling of ['deny', 'ask', 'allow'] as const)
				for (const pattern of policy[ruling] ?? [])
					if (isNamed !== /^\*+$/.test(pattern) && names.some((name) => matches(pattern, name))) return ruling
	}
	return tool.destructive === true ? 'ask' : 'allow'
}

/** What a pattern can match: the name that the model sees, and the one that people see. */
export function namesOf({ name, shown_as = name }: Pick<ToolDefinition, 'name' | 'shown_as'>): string[] {
	return [name, shown_as]
}
