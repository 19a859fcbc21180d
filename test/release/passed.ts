/** The last command of `npm test`: records the commit that passed, for `npm run release`, unless the tree has changes. */
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { git } from './run.ts'
import { passedFile } from './version.ts'

const root = resolve('.')
try {
	if (git(root, 'status', '--porcelain') === '') writeFileSync(passedFile(root), git(root, 'rev-parse', 'HEAD^{tree}'))
} catch {
	// No git, or no clone: there is no commit to record.
}
