/** Active skills for programs of people, such as MCP clients, which pass arguments as text. */
import { Fault } from '../../core/errors.ts'
import type { AgentRef } from '../../core/plugin.ts'
import type { Store } from '../../core/store/ports.ts'
import type { Parameter, UsableSkill } from './contract.ts'
import type { Library } from './library.ts'
import { checkArguments } from './parameters.ts'
import { entriesOf } from './records.ts'

/** Sorted by name. */
export async function usableSkills(store: Store, library: Library, agent: AgentRef): Promise<UsableSkill[]> {
	const usable: UsableSkill[] = []
	for (const entry of await entriesOf(store, agent)) {
		const approved = entry.status === 'active' ? await library.approved(agent, entry) : undefined
		if (!approved) continue
		const { description, parameters, program, body } = approved.document
		usable.push({
			name: entry.name,
			description,
			parameters,
			instructions: program || approved.files.length > 1 ? null : body.trim(),
			read: (args) => checkArguments(parameters, parse(parameters, args)),
		})
	}
	return usable.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

function parse(parameters: readonly Parameter[], args: Readonly<Record<string, string>>): Record<string, unknown> {
	const types = new Map(parameters.map(({ name, type }) => [name, type]))
	return Object.fromEntries(
		Object.entries(args).map(([name, text]) => {
			const type = types.get(name)
			if (type === undefined || type === 'string') return [name, text]
			try {
				return [name, JSON.parse(text) as unknown]
			} catch (error) {
				throw new Fault('invalid_arguments', `"${name}" must be JSON of the type ${type}`, { cause: error })
			}
		}),
	)
}
