import { join } from 'node:path'
import t from 'tap'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import type { Engine } from '../../../core/store/ports.ts'
import { storeSuite } from '../../contracts/store.ts'
import { testFolder } from '../../support/folder.ts'

const home = testFolder(t)
const folders = new Map<Engine, string>()
let count = 0

const openAt = async (path: string): Promise<Engine> => {
	const engine = await openLmdb({ path })
	folders.set(engine, path)
	return engine
}

storeSuite(t, () => openAt(join(home, String(count++))), {
	async reopen(engine) {
		await engine[Symbol.asyncDispose]()
		return openAt(folders.get(engine) as string)
	},
})
