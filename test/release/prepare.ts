/** Makes a clone with the commit of the release. */
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { git, output, say } from './run.ts'

/** Clones the commit that is checked out in `root`, sets the version, regenerates the generated files, and commits. */
export async function prepare(root: string, folder: string, version: string): Promise<string> {
	const clone = cloneOf(root, folder)
	say(`Preparing ${version} …`)
	const last = edit(clone, 'package.json', (text) => withVersion(text, version))
	edit(clone, 'package-lock.json', (text) => withVersion(withVersion(text, version), version, '"packages": {'))
	const day = new Date().toISOString().slice(0, 10)
	edit(clone, 'CHANGELOG.md', (text) =>
		text.replace('## [Unreleased]\n', `## [Unreleased]\n\n## [${version}] - ${day}\n`),
	)
	edit(clone, 'core/client/package.json', (text) => withVersion(text, version))
	const before = (JSON.parse(last) as { version: string }).version
	edit(clone, 'core/version.ts', (text) => text.replace(`'${before}'`, `'${version}'`))
	edit(clone, 'docs/operating.md', (text) => text.replaceAll(`svc-gateway-${before}.tgz`, `svc-gateway-${version}.tgz`))
	const node = process.execPath
	await output(clone, [node, 'docs/make.ts'])
	await output(clone, [node, 'test/compatibility/released.ts'])
	await output(clone, [node, 'node_modules/oxfmt/bin/oxfmt', '.'])
	git(clone, 'commit', '--quiet', '--all', '--message', `Release ${version}`)
	return clone
}

/** Clones the commit that is checked out in `root`, with its installed packages. */
export function cloneOf(
	root: string,
	folder: string,
	author: Readonly<Record<string, string>> = authorOf(root),
): string {
	git(root, 'clone', '--quiet', '--shared', root, folder)
	git(folder, 'checkout', '--quiet', '--detach', git(root, 'rev-parse', 'HEAD'))
	for (const [key, value] of Object.entries(author)) git(folder, 'config', key, value)
	const modules = join(folder, 'node_modules')
	// The entry in .gitignore matches only a folder, not a link.
	if (!existsSync(modules)) symlinkSync(join(root, 'node_modules'), modules)
	writeFileSync(join(folder, '.git/info/exclude'), 'node_modules\n')
	return folder
}

function authorOf(root: string): Record<string, string> {
	return Object.fromEntries(['user.name', 'user.email'].map((key) => [key, git(root, 'config', key)]))
}

/** Returns the former text. */
function edit(clone: string, name: string, change: (text: string) => string): string {
	const file = join(clone, name)
	const text = readFileSync(file, 'utf8')
	writeFileSync(file, change(text))
	return text
}

/** Replaces only the first version after the text `after`. */
function withVersion(text: string, version: string, after = ''): string {
	const at = text.indexOf(after)
	return text.slice(0, at) + text.slice(at).replace(/"version": "[^"]*"/, `"version": "${version}"`)
}
