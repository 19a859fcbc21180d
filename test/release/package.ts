/** Packs a clone, and installs the package as its users do. */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { output, say } from './run.ts'
import { Refused } from './refused.ts'

interface Packed {
	file: string
	name: string
	sha256: string
}

export async function pack(clone: string, folder: string): Promise<Packed> {
	mkdirSync(folder)
	await output(clone, [process.execPath, 'core/cli/launch/pack.mjs', '--pack-destination', folder, '--loglevel=error'])
	const name = readdirSync(folder).find((file) => file.endsWith('.tgz'))
	if (name === undefined) throw new Refused('npm pack made no package')
	const file = join(folder, name)
	return { file, name, sha256: createHash('sha256').update(readFileSync(file)).digest('hex') }
}

/** Installs the package and its dependencies into an empty folder. Returns the path of `svc`. */
export async function installPackage(file: string, folder: string): Promise<string> {
	say('Installing the package in an empty folder …')
	mkdirSync(folder)
	const options = ['--prefix', folder, '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund']
	await output(folder, ['npm', 'install', ...options, file])
	return join(folder, 'node_modules/svc-gateway/core/svc.mjs')
}
