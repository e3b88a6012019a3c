// Text into the clipboard, also where the page came by plain HTTP and browsers hide the modern way.
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const box = document.createElement("textarea");
  box.value = text;
  box.className = "hidden-text";
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
}
