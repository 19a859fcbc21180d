/** Who may look into the home, and into the keys above all. */
import { constants } from 'node:fs'
import { open, readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { error, note, ok, warning } from '../contract.ts'
import type { Check, Finding } from '../contract.ts'
import { quoted } from '../../quoted.ts'
import { MOST_KEYS, look } from '../look.ts'

export const modeChecks: Check[] = [
	{
		id: 'home.mode',
		about: 'who may look into the home folder',
		async run({ home }) {
			const real = await realpath(home).catch(() => home)
			const found = await look(real)
			if (!found) return note(`there is no home folder ${home} yet`, 'make one: svc init')
			if (!found.isDirectory()) return error(`${home} is no folder`, 'set SVC_HOME to a folder for the gateway')
			return isOpen(found.mode) ? opened(real, found.mode, 0o700) : ok(`${home} is closed to other users`)
		},
	},
	{
		id: 'keys.mode',
		about: 'who may read the keys',
		async run({ home }) {
			const folder = join(home, 'keys')
			const names = await readdir(folder).catch(() => undefined)
			if (!names) return []
			const paths = [folder, ...names.slice(0, MOST_KEYS).map((name) => join(folder, name))]
			// What a link leads to is for the operator to close: nobody knows who else needs it, /etc for one.
			const isOwn = (await look(folder))?.isDirectory() === true
			const findings: Finding[] = []
			for (const path of paths) {
				const found = await look(path)
				if (found?.isDirectory() && isOpen(found.mode))
					findings.push(opened(path, found.mode, 0o700, { isKey: true, isOwn }))
				if (found?.isFile() && isOpen(found.mode))
					findings.push(opened(path, found.mode, 0o600, { isKey: true, isOwn }))
			}
			return findings.length > 0 ? findings : ok('the keys are closed to other users')
		},
	},
]

function isOpen(mode: number): boolean {
	// Windows has no such modes.
	return process.platform !== 'win32' && (mode & 0o077) !== 0
}

function opened(path: string, mode: number, wanted: number, { isKey = false, isOwn = true } = {}): Finding {
	const [was, is] = [mode & 0o777, wanted].map((bits) => bits.toString(8).padStart(4, '0')) as [string, string]
	const todo = `close it: chmod ${is.slice(1)} ${quoted(path)}${isOwn ? ', or svc doctor --fix' : ''}`
	const close = async (): Promise<string> => {
		await chmodItself(path, wanted)
		return `${path} is now ${is}`
	}
	if (!isKey) return warning(`${path} is open to other users of this machine (${was})`, todo, close)
	return error(
		`${path} is open to other users of this machine (${was})`,
		`${todo}; replace keys that others read`,
		isOwn ? close : undefined,
	)
}

/** Not what a link leads to that was put there meanwhile. */
async function chmodItself(path: string, mode: number): Promise<void> {
	await using handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
	await handle.chmod(mode)
}
