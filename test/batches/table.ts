/** Which test files share a process, by the batch's name: `test/batches/<name>.test.ts`. */
export const batches: Record<string, string[]> = {
	backup: ['test/backup/**/*.test.ts', 'test/plugins/backups/**/*.test.ts'],
	channels: ['test/plugins/{channels,chat-a}/**/*.test.ts', 'test/contracts/**/*.test.ts'],
	'chat-b': ['test/plugins/chat-b/**/*.test.ts'],
	cli: ['test/cli/**/*.test.ts', 'test/doctor/**/*.test.ts'],
	config: ['test/config/**/*.test.ts', 'test/docs/**/*.test.ts', 'test/plugins/{auth,models,runs,system}/**/*.test.ts'],
	core: ['test/core/**/*.test.ts'],
	crash: ['test/crash/**/*.test.ts'],
	mcp: ['test/plugins/{mcp,mcp-server}/**/*.test.ts'],
	memory: ['test/plugins/{memory,skills,vault}/**/*.test.ts'],
	outside: ['test/plugins/{events,heartbeats,legacy-chat,metrics,openai-api,tracing,webhooks}/**/*.test.ts'],
	reload: ['test/reload/**/*.test.ts', 'test/skills-examples/**/*.test.ts'],
	sandbox: ['test/sandbox/**/*.test.ts'],
	'spec-a': ['test/spec/[a-h]*.test.ts'],
	'spec-l': ['test/spec/[i-q]*.test.ts'],
	'spec-r': ['test/spec/r*.test.ts'],
	'spec-s': ['test/spec/[s-z]*.test.ts'],
}
