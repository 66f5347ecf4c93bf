declare module '*.css';
declare module 'surface' {
  /** Names that exist for the code of a tool, those that take a power, and those of a script. */
  const names: { tool: string[]; powers: string[]; script: string[] };
  export default names;
}
