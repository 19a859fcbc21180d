/** The last command of `npm test`: notes the commit that passed, for `npm run release`. Nothing is noted of a changed tree. */
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { git } from './run.ts'
import { passedFile } from './version.ts'

const root = resolve('.')
try {
	if (git(root, 'status', '--porcelain') === '') writeFileSync(passedFile(root), git(root, 'rev-parse', 'HEAD^{tree}'))
} catch {
	// No git, or no clone: there is no commit to note.
}
