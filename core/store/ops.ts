import { Fault } from '../errors.ts'
import { invalid, joinKey } from './keys.ts'
import type { Op, Rev, Store } from './ports.ts'

/** An op whose key is checked and joined. */
export interface CheckedOp {
	key: string
	value: unknown
	expect: Rev | null | undefined
	/** Writes nothing; without `expect` the key must exist. */
	check?: true | undefined
}

const maxWrites = 100

/** Throws `invalid_request` for ops that one commit cannot contain. */
export function checkOps(scope: string, ops: readonly Op[]): CheckedOp[] {
	let writes = 0
	const keys = new Set<string>()
	const checked = ops.map(({ key: parts, value, expect, check }) => {
		if (parts[0] !== scope) throw invalid(`a commit in "${scope}" cannot write a key in "${parts[0]}"`)
		const key = joinKey(parts)
		if (keys.has(key)) throw invalid('a commit may write a key only once')
		keys.add(key)
		if (!check) writes++
		return { key, value, expect, check }
	})
	if (writes > maxWrites) throw invalid(`a commit may have at most ${maxWrites} writes, this one has ${writes}`)
	return checked
}

/** Throws `conflict` if `present`, the revision of the key, differs from what the op expects. */
export function checkExpected({ key, expect, check }: CheckedOp, present: Rev | undefined): void {
	if (expect === undefined ? !check || present !== undefined : expect === (present ?? null)) return
	const name = key.replaceAll('\0', '/')
	if (expect === null) throw new Fault('conflict', `"${name}" exists already`)
	throw new Fault('conflict', present === undefined ? `"${name}" is gone` : `"${name}" was changed meanwhile`)
}

/** Adds the single writes to a store, as commits of one op. */
export function withSingleWrites(
	store: Pick<Store, 'get' | 'getShared' | 'list' | 'keys' | 'commit' | 'watch'>,
): Store {
	const write = async (op: Op): Promise<Rev> => (await store.commit(op.key[0], [op]))[0] as Rev
	const writeValue = async (op: Op): Promise<Rev> => {
		if (op.value === undefined) throw invalid('there is no value to write; to delete a key, use delete')
		return write(op)
	}
	return {
		...store,
		put: (key, value) => writeValue({ key, value }),
		create: (key, value) => writeValue({ key, value, expect: null }),
		update: (key, value, expect) => writeValue({ key, value, expect }),
		async delete(key, expect) {
			await write({ key, value: undefined, ...(expect !== undefined && { expect }) })
		},
	}
}
