/** Which test files share a process, by the batch's name: `test/batches/<name>.test.ts`. */
export const batches: Record<string, string[]> = {
	backup: ['test/core/backup/**/*.test.ts', 'test/plugins/backups/**/*.test.ts'],
	browser: ['test/browser/**/*.test.ts'],
	channels: ['test/plugins/{channels,telegram}/**/*.test.ts', 'test/contracts/**/*.test.ts'],
	cluster: ['test/{cluster,plugins/cluster}/**/*.test.ts'],
	cli: ['test/core/cli/**/*.test.ts', 'test/plugins/runs/cli/*.test.ts', 'test/plugins/models/cli/*.test.ts'],
	config: [
		'test/config/**/*.test.ts',
		'test/plugins/{agents,attachments,auth,configuration,system,usage}/**/*.test.ts',
		'test/plugins/{models,runs}/*.test.ts',
	],
	core: [
		'test/architecture/**/*.test.ts',
		'test/core/*.test.ts',
		'test/core/{client,engines,events,fetch,host,http,log,process,redactor,runs,store,upgrade,util}/**/*.test.ts',
	],
	crash: ['test/crash/**/*.test.ts'],
	discord: ['test/plugins/discord/**/*.test.ts'],
	docs: ['test/docs/**/*.test.ts', 'test/{compatibility,release}/**/*.test.ts'],
	mcp: ['test/plugins/{mcp,mcp-server}/**/*.test.ts'],
	memory: ['test/plugins/{memory,skills,vault}/**/*.test.ts'],
	outside: [
		'test/plugins/{events,heartbeats,legacy-chat,metrics,openai-api,shared,tracing,webhooks}/**/*.test.ts',
		'test/interop/*.test.ts',
	],
	reload: ['test/reload/**/*.test.ts', 'test/skills-examples/**/*.test.ts', 'test/homes/**/*.test.ts'],
	sandbox: ['test/sandbox/**/*.test.ts'],
	'spec-a': ['test/spec/[a-h]*.test.ts'],
	'spec-l': ['test/spec/[i-q]*.test.ts'],
	'spec-r': ['test/spec/r*.test.ts'],
	'spec-s': ['test/spec/s*.test.ts'],
	'spec-t': ['test/spec/[t-z]*.test.ts'],
}
