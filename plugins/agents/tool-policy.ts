/** The tool policy of an agent (`config.tools`): the tools that it may use, and those whose calls need approval. */
import { matches } from '../../core/util/pattern.ts'
import type { ToolDefinition } from '../../core/plugin.ts'
import type { Agents } from './contract.ts'

/** As `Agents.rulingOn`. */
export const rulingOn: Agents['rulingOn'] = (policy, tool) => {
	if (policy) {
		const names = namesOf(tool)
		for (const isNamed of [true, false])
			for (const ruling of ['deny', 'ask', 'allow'] as const)
				for (const pattern of policy[ruling] ?? [])
					if (isNamed !== /^\*+$/.test(pattern) && names.some((name) => matches(pattern, name))) return ruling
	}
	return tool.destructive === true ? 'ask' : 'allow'
}

/** The names that a pattern can match: the canonical one, and the one that people see. */
export function namesOf({ name, shown_as = name }: Pick<ToolDefinition, 'name' | 'shown_as'>): string[] {
	return [name, shown_as]
}
