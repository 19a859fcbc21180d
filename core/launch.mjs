/**
 * The entry point of the npm scripts, such as `npm start` and `npm test`. Runs on Node 20 and newer: installs packages of
 * package-lock.json that are missing or out of date, then hands over to the pinned Node among them (node_modules/.bin/node).
 */
import { join } from 'node:path'
import { runnable } from './cli/launch/bundle.mjs'
import { gatewayFlags, pinnedNode, replaceBy, root, run } from './process/handover.mjs'
import { install } from './cli/launch/install.mjs'

const [task = 'start', ...rest] = process.argv.slice(2)

/** Each task: what must be installed, and the commands to run one after another with the pinned Node. */
const bin = (name) => join(root, 'node_modules', name)
const check = [
	[bin('oxlint/bin/oxlint'), '--type-aware', '--deny-warnings', '.'],
	[bin('oxfmt/bin/oxfmt'), '--check', '.'],
	// Several checkers repeat some of each other's work: they take 1.5 times the CPU time, and are no faster here.
	[bin('typescript/bin/tsc'), '--checkers', '1'],
	[bin('typescript/bin/tsc'), '-p', 'plugins/console/web'],
	[bin('knip/bin/knip.js')],
]
/** Tests of the structure: imports, declared events, generated pages, batches of tests. They take a few seconds. */
const structure = [
	'test/architecture/imports.test.ts',
	'test/core/batches.test.ts',
	'test/docs/generated.test.ts',
	'test/plugins/events/catalogue.test.ts',
]
/** For the linter and tsc, which are written in Go: less garbage collection saves up to a quarter of the CPU time. It takes more memory, up to the limit. */
const checkVariables = { GOGC: '400', GOMEMLIMIT: '2GiB' }
const tasks = {
	start: { needs: 'run', run: [] },
	dev: { needs: 'all', run: [['--watch-path=core', '--watch-path=config', 'core/main.ts', ...rest]], ipc: true },
	check: { needs: 'all', run: [...check, ['test/batches/run.ts', ...structure]] },
	format: { needs: 'all', run: [[bin('oxfmt/bin/oxfmt'), '.']] },
	test: {
		needs: 'all',
		run: rest.length
			? [['test/batches/run.ts', ...rest]]
			: [...check, ['test/batches/run.ts'], ['test/release/passed.ts']],
	},
	bench: { needs: 'all', run: [['test/bench/main.ts', ...rest]] },
	conformance: { needs: 'all', run: [['test/conformance/main.ts', ...rest]] },
	interop: { needs: 'all', run: [['test/interop/main.ts', ...rest]] },
	docs: { needs: 'run', run: [['docs/make.ts']] },
	release: { needs: 'all', run: [['test/release/main.ts', ...rest]] },
	pack: { needs: 'all', run: [['core/cli/launch/pack.mjs', ...rest]] },
}

const chosen = tasks[task]
if (!chosen) {
	console.error(`launch: no task "${task}"; there are: ${Object.keys(tasks).join(', ')}`)
	process.exit(2)
}
await install(chosen.needs)
if (task === 'start')
	process.exit(await replaceBy(pinnedNode(), [...gatewayFlags, await runnable('core/main.ts'), ...rest]))
for (const args of chosen.run) {
	const code = await run(pinnedNode(), args, { ipc: chosen.ipc, variables: check.includes(args) ? checkVariables : {} })
	if (code !== 0) process.exit(code)
}
