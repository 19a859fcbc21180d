/** Ids of runs. They order the turns of a conversation, so each sorts after all earlier ones. */
import { idAfter, newId, timeOfId } from '../../core/util/ids.ts'
import type { Store } from '../../core/store/ports.ts'
import { keys } from './keys.ts'

let newest = ''

export function newRunId(): string {
	const id = newId()
	return (newest = id > newest ? id : idAfter(newest))
}

/** Called at start: reads the newest id, since the clock may have been set back. */
export async function continueRunIds(store: Pick<Store, 'keys'>): Promise<void> {
	for await (const key of store.keys(keys.indexes(), { reverse: true })) {
		const id = key.at(-1) ?? ''
		if (id > newest && timeOfId(id) !== undefined) newest = id
		return
	}
}
