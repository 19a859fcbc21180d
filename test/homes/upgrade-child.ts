/**
 * Upgrades a home as the gateway does when it starts, for a test that kills it: `node upgrade-child.ts HOME`. It prints a line when it
 * begins and after each batch, and begins the next batch only after reading a byte.
 */
import { readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { openLog } from '../../core/log/log.ts'
import { openLmdb } from '../../core/store/lmdb/open.ts'
import { upgradeOf } from '../../core/upgrade/upgrade.ts'

const home = process.argv[2] as string
const log = openLog({ level: 'silent', format: 'json' })
await using engine = await openLmdb({ path: join(home, 'data'), log })
if (!engine.format) throw new Error('the engine has no format')
const upgrade = upgradeOf({
	engine,
	data: engine.format,
	log,
	folder: join(home, 'data'),
	min_free_mib: 1,
	backup: {
		home,
		folder: join(home, 'backups'),
		include_key: true,
		min_free_mib: 1,
	},
	onProgress() {
		writeSync(1, 'batch\n')
		readSync(0, Buffer.alloc(1))
	},
})
writeSync(1, 'begun\n')
await upgrade?.run()
