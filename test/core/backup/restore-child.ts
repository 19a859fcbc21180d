/** Restores a backup in a process that the test kills meanwhile. */
import { join } from 'node:path'
import { restoreBackup } from '../../../core/backup/restore.ts'

const [file = '', home = ''] = process.argv.slice(2)
await restoreBackup({
	file,
	home,
	force: true,
	storeOf: (at) => join(at, 'data'),
	step: (what) => void process.send?.(what),
})
process.disconnect?.()
