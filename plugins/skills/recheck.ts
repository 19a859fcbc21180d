/** Returns skills to quarantine whose documents violate new rules. Runs once per home and version of the rules. */
import type { Context } from '../../core/plugin.ts'
import type { Key } from '../../core/store/ports.ts'
import type {} from '../agents/contract.ts'
import type { Library } from './library.ts'
import { entriesOf } from './records.ts'

/** Version of the rules: increment it with each new rule for documents. 2: one program, in plain Markdown flow. */
const RULES = 2
const key: Key = ['skills', 'rules']

/** Runs at the start instead of in the first run of a skill, so that operators notice it during the upgrade. */
export async function recheck(
	{ store, signal, use }: Pick<Context, 'store' | 'signal' | 'use'>,
	library: Library,
): Promise<void> {
	if ((await store.get<number>(key))?.value === RULES) return
	for await (const agent of use('agents').list()) {
		for (const entry of await entriesOf(store, agent)) {
			if (signal.aborted) return
			if (entry.status === 'active') await library.approved(agent, entry)
		}
	}
	await store.put(key, RULES)
}
