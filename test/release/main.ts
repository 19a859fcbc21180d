/**
 * `npm run release -- minor` (or `major`, `patch`): makes a release of the current commit, in a separate clone.
 *
 * It checks the tree, the tests and the changelog, sets the version, regenerates the generated files, commits, packs that commit in two
 * folders and compares the packages, installs the package in an empty folder, and opens a copy of each home in test/homes with it.
 * Without `--yes` that is all, and no file remains. With it, the branch gets the commit and the tag `vX.Y.Z`, and `releases/X.Y.Z` gets
 * the package, its checksums and its SBOM (CycloneDX). Exit code 1 for a refusal, which states what to do.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { checkHomes } from './homes.ts'
import { installPackage, pack } from './package.ts'
import { cloneOf, prepare } from './prepare.ts'
import { billOfMaterials } from './parts.ts'
import { Refused } from './refused.ts'
import { git, say } from './run.ts'
import { isStep, versionToRelease } from './version.ts'

const { values, positionals } = parseArgs({
	options: { yes: { type: 'boolean', default: false } },
	allowPositionals: true,
})
const [step = ''] = positionals
if (!isStep(step) || positionals.length > 1) {
	console.error('usage: npm run release -- major|minor|patch [--yes]')
	process.exit(2)
}
const root = resolve('.')
const temporary = mkdtempSync(join(tmpdir(), 'svc-release-'))
try {
	const version = versionToRelease(root, step)
	const clone = await prepare(root, join(temporary, 'clone'), version)
	const packed = await pack(clone, join(temporary, 'one'))
	// Another clone of the same commit, at another path.
	const again = await pack(cloneOf(clone, join(temporary, 'again')), join(temporary, 'two'))
	if (packed.sha256 !== again.sha256)
		throw new Refused(`two packages of one commit differ: ${packed.sha256} and ${again.sha256}`)
	say(`${packed.name} has the digest ${packed.sha256} in both builds`)
	const svc = await installPackage(packed.file, join(temporary, 'installed'))
	await checkHomes(svc, version)
	if (!values.yes) say(`Release ${version} can be made. Nothing was changed; make it with --yes`)
	else {
		const bill = await billOfMaterials(clone, packed.sha256)
		const folder = join(root, 'releases', version)
		mkdirSync(folder, { recursive: true })
		cpSync(packed.file, join(folder, packed.name))
		writeFileSync(join(folder, bill.name), bill.text)
		writeFileSync(join(folder, 'SHA256SUMS'), `${packed.sha256}  ${packed.name}\n${bill.sha256}  ${bill.name}\n`)
		git(root, 'pull', '--quiet', '--ff-only', clone, 'HEAD')
		git(root, 'tag', '--annotate', `v${version}`, '--message', `Version ${version}`)
		say(
			`Released ${version}: ${folder}, and the tag v${version}. Push both, and keep a home of it (test/homes/make.ts)`,
		)
	}
} catch (error) {
	if (!(error instanceof Refused)) throw error
	console.error(`No release: ${error.message}`)
	process.exitCode = 1
} finally {
	rmSync(temporary, { recursive: true, force: true })
}
