/** Marks data as written by an older or a newer version. */
import { openEnv } from '../../core/store/lmdb/env.ts'
import { sealStamp, sealValue } from '../../core/store/lmdb/record.ts'

/** `path`: the data folder, which must not be open. `since`: absent in data of version 0.1.0. */
export async function markFormat(path: string, format: number, since?: string): Promise<void> {
	const { root, tables } = openEnv(path)
	const bytes = since === undefined ? sealStamp('format', format) : sealValue('format', format, { since })
	await tables.meta.put('format', bytes)
	await root.close()
}
