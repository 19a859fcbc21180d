/** Loads the skill to install. */
import { readdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Cli } from '../../../core/cli/contract.ts'
import { textInput, unreadable } from '../../../core/cli/text-input.ts'

const DOCUMENT = 'SKILL.md'

/** The body of the request. `source`: an address, a file, a folder that holds a SKILL.md, or - for standard input. */
export async function documentFrom(cli: Cli, source: string): Promise<{ url: string } | { content: string }> {
	if (/^https?:\/\//i.test(source)) return { url: source }
	if (source === '-' || !(await isFolder(cli.cwd, source))) return { content: await textInput(cli, source) }
	const content = await textInput(cli, join(source, DOCUMENT))
	const others = (await readdir(resolve(cli.cwd, source))).filter((name) => name !== DOCUMENT && !name.startsWith('.'))
	if (others.length > 0)
		cli.out.note(
			`Only ${DOCUMENT} is installed; other files of the folder are ignored: ${others.slice(0, 5).join(', ')}`,
		)
	return { content }
}

async function isFolder(cwd: string, name: string): Promise<boolean> {
	try {
		return (await stat(resolve(cwd, name))).isDirectory()
	} catch (error) {
		throw unreadable(name, error)
	}
}
